#include <doctest/doctest.h>
#include <fmt/format.h>

#include "berth/job/job.h"
#include "berth/job/job_codec.h"
#include "berth/job/test/task_events.h"

namespace berth::job_codec_test {
namespace {

using namespace test;

TEST_CASE("a job is read as it was written, whatever is in its words") {
  Job job;
  job.name = "a\nname";
  job.request.says_count = true;
  job.request.request.count = 2;
  job.request.note = "for the\npaper";
  job.words = {"sh", "-c", "echo \"$X\"\nexit 3\r\\", "", "=", "[section]", "end"};
  job.folder = "/home/a b\nc";
  job.rivals = "x\ny";
  job.array = "0-3";
  job.params = {"lr=1"};
  job.at_once = 2;
  job.has_script = true;
  job.after = {1, 2};
  job.after_ok = {3};
  job.after_fail = {4, 5};
  job.singleton = true;
  job.retries = 4;
  job.retry_on = {75, 137};
  job.not_on_last_device = true;
  job.requeue = true;
  job.rerun = true;
  job.tty = true;
  job.slurm = true;
  job.lines_of = "/a/commands";
  job.output_limit = 1 << 20;
  job.output_to = "/a/%j.out";
  job.error_to = "/a/%j.err";
  job.notify = {.targets = {"mail", "ntfy:https://n/x"}, .events = {"end", "fail"}};
  job.not_before_s = 1763809999;
  job.submitted_s = 1763809921;
  job.umask = 0;
  job.nice = -3;
  job.limits = {"nofile=1024", "as=unlimited"};
  job.tenant = 9;
  job.tenant_gpus = 2;
  job.tenant_grace_s = 60;
  CHECK(decode_job(encode_job(job)) == job);
  CHECK(!decode_job("berth-job 2\nname=x\nend\n"));
}

TEST_CASE("what a version does not know of a job it ignores") {
  Job job;
  job.words = {"true"};
  job.folder = "/";
  const std::string plain = encode_job(job);
  CHECK(plain.find("tty") == std::string::npos);
  job.tty = true;
  std::string later = encode_job(job);
  later.replace(later.find("tty=1"), 3, "xyz");
  job.tty = false;
  CHECK(decode_job(later) == job);
}

TEST_CASE("events are read as they were appended, one after another") {
  TaskEvent taken = event(TaskEventKind::taken);
  taken.taker.pid = 12;
  taken.taker.start_ticks = 345;
  taken.boot_ms = 17;
  TaskEvent started = event(TaskEventKind::started);
  started.devices = {"0", "3:1"};
  started.rerun = true;
  TaskEvent late = ended(0);
  late.reason = "[started]\nwhole=1";
  late.figures = {0, 1, 100};
  TaskEvent killed = event(TaskEventKind::ended);
  killed.signal = 9;
  TaskEvent cut = event(TaskEventKind::output_cut);
  cut.cut_bytes = 4096;
  TaskEvent handed_on = event(TaskEventKind::taken);
  handed_on.handed_on = true;
  TaskEvent moved = event(TaskEventKind::moved);
  moved.position = "0125";
  TaskEvent passed = event(TaskEventKind::passed);
  passed.to = TaskId{12, 7};
  TaskEvent edited = event(TaskEventKind::edited);
  edited.edit = 3;
  const std::vector<TaskEvent> all{taken,
                                   edited,
                                   event(TaskEventKind::held),
                                   event(TaskEventKind::let_go),
                                   handed_on,
                                   moved,
                                   passed,
                                   started,
                                   event(TaskEventKind::cancelled),
                                   late,
                                   killed,
                                   cut,
                                   event(TaskEventKind::put_off),
                                   event(TaskEventKind::again),
                                   event(TaskEventKind::retried),
                                   event(TaskEventKind::preempted),
                                   event(TaskEventKind::cut_off)};
  std::string text;
  for (const TaskEvent& each : all) text += encode_event(each);
  CHECK(decode_events(text) == all);
}

TEST_CASE("the events of a task have the words that other versions read") {
  using enum TaskEventKind;
  std::string words;
  for (const TaskEventKind kind : {taken, started, ended, cancelled, put_off, again, retried, output_cut,
                                   not_told, preempted, cut_off, moved, passed, edited})
    words += std::string(to_text(kind)) + " ";
  CHECK(words ==
        "taken started ended cancelled put_off again retried output_cut not_told gave_way cut_off "
        "moved passed edited ");
}

TEST_CASE("an event that was cut off anywhere has not happened, and spoils none after it") {
  const std::string first = encode_event(event(TaskEventKind::taken));
  const std::string cut = encode_event(event(TaskEventKind::started));
  const std::string next = encode_event(event(TaskEventKind::cancelled));
  for (std::size_t length = 0; length < cut.size(); ++length) {
    const std::string torn = first + cut.substr(0, length);
    CHECK(decode_events(torn).size() == 1);
    const auto events =
        decode_events(fmt::format("{}{}{}", torn, torn.ends_with('\n') ? "" : kSpoiled, next));
    CHECK(events.size() == 2);
    CHECK(events.back().kind == TaskEventKind::cancelled);
  }
}

TEST_CASE("of events that were written at once all have happened or none, wherever that was cut off") {
  const std::vector<TaskEvent> one{event(TaskEventKind::taken)};
  const std::vector<TaskEvent> both{ended(3), event(TaskEventKind::retried)};
  const std::string first = encode_events(one);
  const std::string pair = encode_events(both);
  CHECK(first == encode_event(one.front()));
  CHECK(decode_events(pair) == both);
  for (std::size_t length = 0; length < pair.size(); ++length) {
    std::string torn = first + pair.substr(0, length);
    if (!torn.ends_with('\n')) torn += kSpoiled;
    CHECK(decode_events(torn) == one);
    // Neither does what is written next complete it.
    CHECK(decode_events(torn + first).size() == 2);
    CHECK(decode_events(torn + pair).size() == 3);
    CHECK(decode_events(torn + pair + first).size() == 4);
  }
  // The end of them alone is nothing.
  CHECK(decode_events(first + pair.substr(pair.find("\n[") + 1) + first).size() == 2);
}

TEST_CASE("a newer Berth may write events of its own among ours") {
  const std::vector<TaskEvent> three{event(TaskEventKind::moved), ended(3), event(TaskEventKind::retried)};
  std::string newer = encode_events(three);
  newer.replace(newer.find("[ended]"), 7, "[dozed]");
  CHECK(decode_events(newer) == std::vector{three.front(), three.back()});
}

}  // namespace
}  // namespace berth::job_codec_test
