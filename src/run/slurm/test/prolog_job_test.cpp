#include "berth/slurm/prolog_job.h"

#include <doctest/doctest.h>

#include <map>

namespace berth::prolog_job_test {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;
using Names = std::vector<std::string>;

Result<SlurmJob> read(const Variables& variables) {
  return slurm_job_from([&](std::string_view name) -> std::string_view {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string_view() : std::string_view(found->second);
  });
}

Variables prolog(Variables more) {
  more.insert({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_UID", "1001"}});
  return more;
}

TEST_CASE("a job of Slurm is read from the variables of its prolog") {
  CHECK(*read(prolog({})) == SlurmJob{12, 1001, std::nullopt, {}});
  CHECK(*read(prolog({{"SLURM_JOB_GID", "100"}, {"SLURM_JOB_GPUS", "0,2-3"}})) ==
        SlurmJob{12, 1001, 100, {"0", "2", "3"}});
  // A range of the mask is one of numbers, too.
  CHECK(read(prolog({{"SLURM_JOB_GPUS", "5"}, {"CUDA_VISIBLE_DEVICES", "0-1"}}))->gpus == Names{"5"});
}

TEST_CASE("Slurm names an instance in the mask alone") {
  CHECK(read(prolog({{"SLURM_JOB_GPUS", "0"}, {"CUDA_VISIBLE_DEVICES", "MIG-5a,GPU-77"}}))->gpus ==
        Names{"MIG-5a", "GPU-77"});
  CHECK(read(prolog({{"CUDA_VISIBLE_DEVICES", "0"}}))->gpus.empty());
}

TEST_CASE("what is no prolog is refused") {
  for (const char* number : {"", "0", "-1", "x", "4294967296"}) {
    auto variables = prolog({});
    variables["SLURM_JOB_ID"] = number;
    CHECK_MESSAGE(read(variables).error().code == ErrorCode::usage, number);
  }
  CHECK(read({{"SLURM_JOB_ID", "12"}}).error().code == ErrorCode::usage);
  CHECK(
      read(prolog({{"SLURM_JOB_GPUS", "0,,1"}})).error().message.starts_with("the GPUs of Slurm's job 12: "));
}

TEST_CASE("the numbers of Slurm are places in its gres.conf") {
  CHECK(*devices_of_slurm({"0", "3"}, {}) == Names{"0", "3"});
  CHECK(*devices_of_slurm({"0", "3"}, {"4", "5", "6", "7"}) == Names{"4", "7"});
  CHECK(*devices_of_slurm({"MIG-5a"}, {"4"}) == Names{"MIG-5a"});
  CHECK(devices_of_slurm({"2"}, {"4", "5"}).error().code == ErrorCode::usage);
}

}  // namespace
}  // namespace berth::prolog_job_test
