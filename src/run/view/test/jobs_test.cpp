#include "berth/view/jobs.h"
#include "berth/job/task_standing.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace berth::view::jobs_test {
namespace {

ListedTask a_task() {
  ListedTask task;
  task.id = {12, 7};
  task.job.name = "sweep";
  task.job.words = {"python", "train.py"};
  task.job.folder = "/home/ada";
  task.request = {"--count=2"};
  task.job.submitted_s = 1'700'000'000;
  task.job.after = {3, 4};
  task.job.after_ok = {5};
  task.job.after_fail = {6};
  task.job.singleton = true;
  task.job.not_before_s = 1'700'000'100;
  task.job.retries = 2;
  task.standing.phase = TaskPhase::ended;
  task.standing.started_s = 1'700'000'200;
  task.standing.ended_s = 1'700'000'300;
  task.standing.exit_status = 3;
  task.standing.devices = {"0", "3:1"};
  task.standing.starts = 2;
  task.standing.reason = "no room";
  task.standing.not_told = "no mail";
  task.standing.cut_bytes = 4096;
  task.output_path = "/home/ada/12.7";
  task.left_behind = "712 (sccache)";
  return task;
}

TEST_CASE("jobs that another host tells are read as they were written, with the name of the host") {
  ListedTask array = a_task();
  array.id = {13, {}};
  array.output_path.clear();
  array.counts =
      TaskCounts{.waiting = 1, .running = 2, .done = 3, .failed = 4, .cancelled = 5, .interrupted = 6};
  ListedTask lines = a_task();
  lines.id = {14, {}};
  lines.job.lines_of = "/home/ada/commands.txt";
  lines.standing.phase = TaskPhase::waiting;
  lines.standing.on_hold = true;
  JobsOfHosts jobs{{a_task(), array, lines}, {}};
  const auto read = jobs_from_json(jobs_json(jobs.tasks, Layout::line), "gpu1");
  REQUIRE(read);
  for (ListedTask& each : jobs.tasks) each.host = "gpu1";
  CHECK(jobs_json(JobsOfHosts{*read, {}}, Layout::line) == jobs_json(jobs, Layout::line));
}

TEST_CASE("a task is shown with what it runs") {
  ListedTask task = a_task();
  task.job.words = {"train", "--seed={index}", "--lr={lr}"};
  task.job.params = {"lr=0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8"};
  const auto table = [&] { return jobs_table(std::vector{task}, Style{.width = 200}); };
  CHECK(table().contains("train --seed=7 --lr=0.8"));
  task.id.index.reset();
  CHECK(table().contains("train --seed={index} --lr={lr}"));
  // Of another host, which says what it likes.
  task.id.index = 7;
  task.job.params = {"lr="};
  CHECK(table().contains("train --seed={index}"));
  task.job.lines_of = "/home/ada/commands.txt";
  CHECK(table().contains("line 7 of /home/ada/commands.txt"));
  task.id.index.reset();
  CHECK(table().contains("the lines of /home/ada/commands.txt"));
}

TEST_CASE(
    "what a table has no room for is said once for all jobs of which it is true, and once to a reader") {
  ListedTask task = a_task();
  task.standing = {};
  task.job.not_before_s.reset();
  std::vector<ListedTask> tasks;
  for (const std::uint64_t number : {12, 13, 14, 16}) {
    task.id = {number, {}};
    tasks.push_back(task);
  }
  CHECK(jobs_table(tasks, Style{.width = 200}).contains("\njobs 12-14,16: comes after jobs 3, 4, 5, 6\n"));
  ListedTask over = a_task();
  over.standing.last_s = 1'700'000'300;
  CHECK(jobs_table(std::vector{over}, Style{}, kNoJobs, 1'700'000'300).contains("job 12.7: no room\n"));
  CHECK_FALSE(jobs_table(std::vector{over}, Style{}, kNoJobs, 1'700'000'301).contains("no room"));
  // What waits has not been told once and for all.
  CHECK(jobs_table(tasks, Style{}, kNoJobs, 1'700'000'301).contains("comes after"));
}

TEST_CASE("how long a job ran is shown, and of one that runs how long it has") {
  ListedTask task = a_task();
  CHECK(jobs_table(std::vector{task}, Style{.width = 200}).contains(" 1 min  0,3:1 "));
  task.standing = {};
  task.standing.phase = TaskPhase::running;
  task.standing.started_s = 1'700'000'200;
  CHECK(jobs_table(std::vector{task}, Style{.width = 200, .now_s = 1'700'007'400}).contains(" 2 h  -"));
  task.standing.started_s.reset();
  CHECK_FALSE(jobs_table(std::vector{task}, Style{.width = 200, .now_s = 1'700'007'400}).contains(" h "));
}

TEST_CASE("a time limit is shown until the job is over") {
  ListedTask task = a_task();
  task.request = {"--count=2", "--time=2h"};
  task.standing = {};
  const auto table = [&](std::int64_t now_s) {
    return jobs_table(std::vector{task}, Style{.width = 200, .now_s = now_s});
  };
  CHECK(table(1'700'000'200).contains(" - of 2 h "));
  task.standing.phase = TaskPhase::running;
  task.standing.started_s = 1'700'000'200;
  CHECK(table(1'700'000'260).contains(" 1 min of 2 h "));
  task.standing.phase = TaskPhase::ended;
  CHECK_FALSE(table(1'700'000'260).contains(" of "));
  // Of another host, or of an older Berth.
  task.standing.phase = TaskPhase::waiting;
  task.request = {"--time=7200"};
  CHECK(table(1'700'000'200).contains(" of 2 h "));
  task.request = {"--time=soon"};
  CHECK_FALSE(table(1'700'000'200).contains(" of "));
}

TEST_CASE("an array of which as many tasks run as may says so, and so does each task that waits") {
  ListedTask array = a_task();
  array.id = {13, {}};
  array.job.at_once = 2;
  array.job.after = array.job.after_ok = array.job.after_fail = {};
  array.job.singleton = false;
  array.job.not_before_s.reset();
  array.standing = {};
  array.standing.phase = TaskPhase::running;
  array.counts = TaskCounts{.waiting = 3, .running = 2};
  const std::string why = "at most 2 of its tasks run at the same time, as you asked";
  CHECK(jobs_table(std::vector{array}, Style{.width = 200}).contains("job 13: " + why));
  array.counts->running = 1;
  CHECK_FALSE(jobs_table(std::vector{array}, Style{.width = 200}).contains(why));
  std::vector<ListedTask> tasks(3, array);
  for (unsigned index = 0; index < 3; ++index) {
    tasks[index].id = {13, index};
    tasks[index].counts.reset();
  }
  tasks[2].standing.phase = TaskPhase::waiting;
  CHECK(jobs_table(tasks, Style{.width = 200}).contains("job 13.2: " + why));
}

TEST_CASE("what is no document about jobs is refused, whatever it is") {
  const std::string one = jobs_json(std::vector{a_task()}, Layout::line);
  const auto spoiled = [&](const std::string& word, const std::string& other) {
    std::string text = one;
    const std::size_t at = text.find(word);
    REQUIRE(at != std::string::npos);
    return text.replace(at, word.size(), other);
  };
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("berth: no"), std::string(100'000, '['),
        spoiled("berth-jobs", "berth-list"), spoiled("\"ended\"", "\"gone\""), spoiled("\"12.7\"", "\"-1\""),
        spoiled("[3,4]", "[\"x\"]"), spoiled("[3,4]", "{}"), spoiled("\"jobs\":[", "\"jobs\":[3,")})
    CHECK_MESSAGE(!jobs_from_json(text, "gpu1"), text.substr(0, 200));
}

TEST_CASE("the table of several hosts has each job with its host, and what is not told with its reason") {
  ListedTask task = a_task();
  task.host = "gpu1\x1b[2J";
  Style style;
  style.width = 200;
  const std::string text = jobs_table(JobsOfHosts{{task}, {{"gpu2", "it is down\x1b[2J"}}}, style);
  CHECK(text.starts_with("HOST"));
  CHECK(text.find("sweep") != std::string::npos);
  CHECK(text.find("gpu2: it is down") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(jobs_table(JobsOfHosts{}, style) == kNoJobsOnHosts);
}

}  // namespace
}  // namespace berth::view::jobs_test
