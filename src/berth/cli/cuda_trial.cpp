// `berth __cuda-trial [context]` starts CUDA under the mask of its environment, and says how that
// went (src/berth/source/cuda/cuda_trial.h).
#include "berth/source/cuda/cuda_trial.h"

#include <algorithm>

#include "berth/command/command.h"

namespace berth::cli {
namespace {

class CudaTrialCommand : public command::Command {
 public:
  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.arguments = "[context]";
    return syntax;
  }
  Result<command::Output> run(command::Environment&, const std::vector<std::string>& words) override {
    source::run_cuda_trial(std::ranges::find(words, "context") != words.end());
  }
};

}  // namespace

BERTH_COMMAND(make_cuda_trial, CudaTrialCommand);

}  // namespace berth::cli
