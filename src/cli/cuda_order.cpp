// `berth __cuda-order` prints the UUIDs of the GPUs as CUDA numbers them under the mask of its
// environment. A process that has initialised CUDA cannot change its mask and cannot be forked, so
// a program of its own asks.

#include "berth/api/cuda.h"
#include "berth/command/command.h"

namespace berth::cli {
namespace {

class CudaOrder : public command::Command {
 public:
  Result<command::Output> run(command::Environment&, const command::Words&) override {
    BERTH_LET(const auto order, cuda_order());
    command::Output output;
    for (const std::string& uuid : order) output.out += uuid + "\n";
    return output;
  }
};

}  // namespace

BERTH_COMMAND(make_cuda_order, CudaOrder);

}  // namespace berth::cli
