#include "berth/jobs/job_spool_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "berth/jobs/job_spool.h"

namespace berth::jobs::jobs_over_test {
namespace {

/// A spool of its own, without jobs.
class Spool {
 public:
  Spool() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Spool() { std::filesystem::remove_all(path); }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  JobSpool open() const { return JobSpool::open(path).value(); }
  std::uint64_t add(const std::string& array = "") const {
    JobSpool spool = open();
    Job job;
    job.words = {"true"};
    job.array = array;
    return spool.add(spool.hold_numbers().value(), job, {}).value();
  }
  void note(TaskId id, TaskEventKind kind) const {
    TaskEvent event;
    event.kind = kind;
    REQUIRE(open().append(id, event));
  }
  /// It has run, and nothing of it is left.
  void ends(TaskId id) const {
    for (const auto kind : {TaskEventKind::taken, TaskEventKind::started, TaskEventKind::ended})
      note(id, kind);
  }
  /// A runner reads the job, and leaves. `meanwhile`: is done in between.
  template <class Meanwhile>
  void is_read(std::uint64_t number, const Meanwhile& meanwhile) const {
    const JobSpool spool = open();
    JobsOver over(spool);
    over.note(number, *spool.told(number).value());
    meanwhile();
    over.keep();
  }
  void is_read(std::uint64_t number) const {
    is_read(number, [] {});
  }
  bool is_over(std::uint64_t number) const {
    const JobSpool spool = open();
    return JobsOver(spool).is_still(number);
  }

  std::string path = std::filesystem::temp_directory_path() / "berth-over-XXXXXX";
};

}  // namespace

TEST_CASE("a job that was over is over for the next runner, until something is written of it") {
  const Spool spool;
  const std::uint64_t plain = spool.add();
  const std::uint64_t array = spool.add("1-3");
  for (const TaskId id : {TaskId{plain, {}}, TaskId{array, 1}, TaskId{array, 2}, TaskId{array, 3}})
    spool.ends(id);
  CHECK_FALSE(spool.is_over(plain));
  for (const std::uint64_t number : {plain, array}) {
    spool.is_read(number);
    CHECK(spool.is_over(number));
  }
  spool.note({plain, {}}, TaskEventKind::again);
  CHECK_FALSE(spool.is_over(plain));
  CHECK(spool.is_over(array));
  spool.note({array, 2}, TaskEventKind::again);
  CHECK_FALSE(spool.is_over(array));
  CHECK_FALSE(spool.is_over(77));
}

TEST_CASE("a job of which something is written before the runner leaves is not remembered as over") {
  const Spool spool;
  const std::uint64_t waits = spool.add();
  spool.is_read(waits);
  CHECK_FALSE(spool.is_over(waits));
  const std::uint64_t array = spool.add("1-2");
  spool.ends({array, 1});
  spool.is_read(array);
  CHECK_FALSE(spool.is_over(array));
  const std::uint64_t ended = spool.add();
  spool.ends({ended, {}});
  spool.is_read(ended, [&] { spool.note({ended, {}}, TaskEventKind::again); });
  CHECK_FALSE(spool.is_over(ended));
  const std::uint64_t task = spool.add("1");
  spool.ends({task, 1});
  spool.is_read(task, [&] { spool.note({task, 1}, TaskEventKind::again); });
  CHECK_FALSE(spool.is_over(task));
}

TEST_CASE("a file that is of another kind, or was cut off anywhere, makes no job over that is not") {
  const Spool spool;
  const std::uint64_t first = spool.add();
  const std::uint64_t second = spool.add();
  for (const std::uint64_t number : {first, second}) spool.ends({number, {}});
  spool.is_read(first);
  const std::string path = spool.path + "/over";
  std::string text;
  std::getline(std::ifstream(path), text, '\0');
  REQUIRE(text.starts_with("berth-over 1\n"));
  spool.note({first, {}}, TaskEventKind::again);
  for (std::size_t length = 0; length <= text.size(); ++length) {
    std::ofstream(path, std::ios::trunc) << text.substr(0, length);
    spool.is_read(second);
    CHECK_FALSE(spool.is_over(first));
    // A line that was cut off takes the next one with it, which the runner after it reads again.
    spool.is_read(second);
    CHECK(spool.is_over(second));
  }
  std::ofstream(path, std::ios::trunc) << "something else\n";
  CHECK_FALSE(spool.is_over(second));
  spool.is_read(second);
  CHECK(spool.is_over(second));
}

}  // namespace berth::jobs::jobs_over_test
