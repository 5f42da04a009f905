#include "berth/jobs/listed_jobs.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "berth/job/job.h"
#include "berth/job/job_codec.h"
#include "berth/job/task_standing.h"

namespace berth::jobs::listed_jobs_test {
namespace {

/// A folder with so many jobs that wait, as files.
class ManyJobs {
 public:
  explicit ManyJobs(std::uint64_t count) {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
    Job job;
    job.words = {"train"};
    const std::string text = encode_job(job);
    for (std::uint64_t number = 1; number <= count; ++number) {
      std::filesystem::create_directory(folder_of(number));
      std::ofstream(folder_of(number) + "/job") << text;
      std::ofstream(folder_of(number) + "/state");
    }
  }
  ~ManyJobs() { std::filesystem::remove_all(path_); }
  ManyJobs(const ManyJobs&) = delete;
  ManyJobs& operator=(const ManyJobs&) = delete;

  void spoil(std::uint64_t number) const { std::ofstream(folder_of(number) + "/job") << "no job\n"; }

  std::vector<std::uint64_t> listed(std::string& told) const {
    const auto spool = JobSpool::open(path_);
    REQUIRE(spool);
    const auto tasks = all_listed(*spool, told);
    REQUIRE(tasks);
    std::vector<std::uint64_t> numbers;
    for (const view::ListedTask& task : *tasks) {
      numbers.push_back(task.id.job);
      CHECK(task.job.words == std::vector<std::string>{"train"});
      CHECK(task.standing.phase == TaskPhase::waiting);
    }
    return numbers;
  }

 private:
  std::string folder_of(std::uint64_t number) const { return fmt::format("{}/{}", path_, number); }

  std::string path_ = "/tmp/berth_listed_XXXXXX";
};

TEST_CASE("many jobs are read by several threads, and listed once each and in their order") {
  for (const std::uint64_t count : {0, 1, 499, 500, 501, 1003}) {
    CAPTURE(count);
    std::vector<std::uint64_t> all;
    for (std::uint64_t number = 1; number <= count; ++number) all.push_back(number);
    std::string told;
    CHECK(ManyJobs(count).listed(told) == all);
    CHECK(told.empty());
  }
}

TEST_CASE("of many jobs those that cannot be read are told in their order, and the others are listed") {
  const ManyJobs jobs(600);
  jobs.spoil(599);
  jobs.spoil(7);
  std::string told;
  CHECK(jobs.listed(told).size() == 598);
  CHECK(told.find("/7/job") < told.find("/599/job"));
  CHECK(told.find("/599/job") != std::string::npos);
}

}  // namespace
}  // namespace berth::jobs::listed_jobs_test
