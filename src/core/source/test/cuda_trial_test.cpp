// The child is played by the shell here; tests/cli/doctor_test.py has the real one.
#include "berth/source/cuda/cuda_trial.h"

#include <doctest/doctest.h>

namespace berth::source::cuda_trial_test {
namespace {

CudaTrial with(const std::string& script, std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  const auto trial = try_cuda({.program = "/bin/sh", .arguments = {"-c", script}, .patience = patience});
  REQUIRE(trial);
  return *trial;
}

TEST_CASE("what a trial of CUDA found is read back") {
  const CudaTrial well = with("printf 'berth-cuda-trial 1\\nend=starts\\ndevices=2\\nend\\n'");
  CHECK(well == CudaTrial{.end = CudaTrial::End::starts, .devices = 2});
  CHECK(trouble_of(well).empty());
  const CudaTrial refused =
      with("printf 'berth-cuda-trial 1\\nend=refused\\nerror=999\\nwords=unknown error\\nlater=7\\nend\\n'");
  CHECK(refused == CudaTrial{.end = CudaTrial::End::refused, .error = 999, .words = "unknown error"});
  CHECK(trouble_of(refused) == "CUDA does not start: error 999 (unknown error)");
  CudaTrial of_context = refused;
  of_context.context = true;
  CHECK(trouble_of(of_context) == "CUDA makes no context on it: error 999 (unknown error)");
}

TEST_CASE("a trial of CUDA that hangs is ended, and one that crashes or talks nonsense is told") {
  CHECK(with("exec sleep 1000", std::chrono::milliseconds(50)).end == CudaTrial::End::hangs);
  CHECK(with("yes", std::chrono::seconds(30)).end == CudaTrial::End::hangs);
  const CudaTrial crashed = with("kill -SEGV $$");
  CHECK(crashed.end == CudaTrial::End::crashes);
  CHECK(trouble_of(crashed) == "CUDA does not start: the trial ended with signal 11 (Segmentation fault)");
  CHECK(with("printf 'berth-cuda-trial 1\\nend=starts\\n'").end == CudaTrial::End::crashes);
  CHECK(with("").end == CudaTrial::End::crashes);
}

TEST_CASE("the child of a trial is told whether to make a context") {
  CHECK(try_cuda({.program = "/bin/sh",
                  .arguments = {"-c",
                                "test \"$0\" = context && printf 'berth-cuda-trial 1\\nend=starts\\nend\\n'"},
                  .with_context = true})
            ->end == CudaTrial::End::starts);
}

TEST_CASE("a program that is not there is an error") {
  CHECK_FALSE(try_cuda({.program = "/nonexistent/berth"}));
}

}  // namespace
}  // namespace berth::source::cuda_trial_test
