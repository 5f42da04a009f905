// `berth __cuda-trial [context]` starts CUDA under the mask of its environment, and says how that
// went (src/core/source/cuda/cuda_trial.h).
#include "berth/source/cuda/cuda_trial.h"

#include <algorithm>

#include "berth/command/command.h"

namespace berth::cli {
namespace {

class CudaTrialCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "[context]"; }
  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    source::run_cuda_trial(std::ranges::find(words, "context") != words.end());
  }
};

}  // namespace

BERTH_COMMAND(make_cuda_trial, CudaTrialCommand);

}  // namespace berth::cli
