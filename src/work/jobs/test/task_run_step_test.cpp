#include "berth/jobs/model/task_run_step.h"
#include "berth/job/task_standing.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "property.h"

namespace berth::task_run_step_test {
namespace {

using namespace jobs::task_run;
using Words = std::vector<std::string>;

constexpr TaskId kTask{12, {}};
constexpr TaskId kOfArray{12, 7};

TaskEvent wrote(TaskEventKind kind) {
  TaskEvent event;
  event.kind = kind;
  return event;
}

TaskEvent wrote_start(bool rerun = false) {
  TaskEvent event = wrote(TaskEventKind::started);
  event.rerun = rerun;
  event.devices = {"3"};
  return event;
}

/// What a disk does with a write. torn: it is in the file, and not on the disk.
enum class Disk { takes, refuses, torn };

/// The process was killed here.
struct Killed {};

/// A task, its file, and the run that has it: `did` is what the run did.
class Life {
 public:
  Life() = default;
  explicit Life(Job of, TaskId named = kTask) : job(std::move(of)), id(named) {}
  explicit Life(std::vector<TaskEvent> before) : file(std::move(before)) {}

  Life& begins() {
    state = {};
    take(begin());
    return *this;
  }
  Life& is(const Event& event) {
    take(next(job, id, wrote(TaskEventKind::taken), std::move(state), event));
    return *this;
  }
  Life& granted() { return is(jobs::task_run::Granted{{"0"}}); }
  Life& ends_with(int status, int signal = 0) { return ends({{status, signal}}); }
  Life& ends(RunEnd end) { return is(CommandEnded{std::move(end), false, 0, standing()}); }
  Life& fails(ErrorCode code, std::string why = "why") {
    return is(Failed{{code, std::move(why)}, standing().phase == TaskPhase::waiting});
  }

  TaskStanding standing(bool held = true) const {
    TaskStanding found = standing_of(file, held);
    if (array_cancelled && found.phase == TaskPhase::waiting) found.phase = TaskPhase::cancelled;
    return found;
  }
  /// What the run did last.
  Words last(std::ptrdiff_t count) const { return {did.end() - count, did.end()}; }

  Job job{};
  TaskId id = kTask;
  std::vector<TaskEvent> file{};
  bool array_cancelled = false;
  State state{};
  Words did{};
  std::function<Disk(const TaskEvent&)> disk = [](const TaskEvent&) { return Disk::takes; };
  std::function<bool()> reads = [] { return true; };
  std::function<void()> meanwhile = [] {};  ///< what others do before each of its deeds

 private:
  void take(Step step) {
    state = std::move(step.state);
    for (const Action& action : step.actions) {
      meanwhile();
      std::visit([this](const auto& what) { perform(what); }, action);
    }
  }

  Disk append(const TaskEvent& event) {
    const Disk done = disk(event);
    if (done != Disk::refuses) file.push_back(event);
    did.push_back(
        fmt::format("{}{}", done == Disk::takes ? "writes " : "cannot write ", to_text(event.kind)));
    if (!event.reason.empty()) did.back() += ": " + event.reason;
    return done;
  }
  void look() {
    if (!reads()) return (void)is(NotLooked{{ErrorCode::failure, "no file"}});
    const bool cancelled =
        id.index ? array_cancelled : standing_of(file, false).phase == TaskPhase::cancelled;
    is(Looked{standing(), cancelled});
  }

  void perform(const Look&) { look(); }
  void perform(const WriteAndLook& what) {
    if (append(what.event) != Disk::takes) return (void)is(NotLooked{{ErrorCode::failure, "disk full"}});
    look();
  }
  void perform(const Note& what) { append(what.event); }
  void perform(const NoteCut& what) {
    if (append(what.event) == Disk::takes) is(CutNoted{*what.event.cut_bytes});
  }
  void perform(const Join& what) {
    did.push_back(what.not_on.empty() ? "joins" : fmt::format("joins, not on {}", what.not_on.front()));
    if (what.on_whole_devices) did.back() += ", with whole ones for memory of earlier runs";
  }
  void perform(const Go&) { did.emplace_back("goes"); }
  void perform(const Refuse& what) { did.push_back("gives back: " + what.error.message); }
  void perform(const TellRunner&) { did.emplace_back("tells the runner"); }
  void perform(const TellStart&) { did.emplace_back("tells its user of the start"); }
  void perform(const End& what) {
    for (const TaskEvent& event : what.events) append(event);
    did.emplace_back("tells of its end");
  }
  void perform(const Leave&) { did.emplace_back("leaves"); }
  void perform(const Fail& what) { did.push_back("fails: " + what.error.message); }
};

Job job_that(const std::function<void(Job&)>& is_so) {
  Job job;
  is_so(job);
  return job;
}

}  // namespace

TEST_CASE("a task is taken, then its start is written, and then its command begins") {
  CHECK(Life().begins().granted().ends_with(0).did == Words{"writes taken", "joins", "writes started",
                                                            "tells the runner", "tells its user of the start",
                                                            "goes", "writes ended", "tells of its end"});
}

TEST_CASE("that a task starts is on the disk before its command begins") {
  const Step step = next({}, kTask, {}, {Queued{}}, jobs::task_run::Granted{{"0"}});
  const auto* written = std::get_if<WriteAndLook>(&step.actions.back());
  REQUIRE(written);
  CHECK(written->durable);
  CHECK(written->event.devices == Words{"0"});
}

TEST_CASE("what is over, or was started by another, is left alone") {
  for (const std::vector<TaskEvent>& before :
       {std::vector{wrote(TaskEventKind::cancelled)}, std::vector{wrote_start(), wrote(TaskEventKind::ended)},
        // Its berth run was killed, and its user has not said that it may run again.
        std::vector{wrote_start()}})
    CHECK(Life(before).begins().did == Words{"leaves"});
}

TEST_CASE("one that was cut off and is to run again gets that written first") {
  CHECK(Life({wrote_start(true)}).begins().did == Words{"writes cut_off", "writes taken", "joins"});
  // It was cancelled while it ran.
  CHECK(Life({wrote_start(true), wrote(TaskEventKind::cancelled)}).begins().did ==
        Words{"writes cut_off", "leaves"});
}

TEST_CASE("one that is cancelled before it has said who runs it does not join the queue") {
  Life life;
  life.disk = [&](const TaskEvent&) {
    life.file.push_back(wrote(TaskEventKind::cancelled));
    return Disk::takes;
  };
  CHECK(life.begins().did == Words{"writes taken", "leaves"});
}

TEST_CASE("one that is cancelled before or just after its start is written does not start") {
  Life before;
  before.begins().file.push_back(wrote(TaskEventKind::cancelled));
  CHECK(before.granted().last(2) == Words{"writes started", "gives back: it was cancelled"});
  CHECK(before.fails(ErrorCode::not_now).last(1) == Words{"leaves"});
  CHECK(before.standing(false).phase == TaskPhase::cancelled);

  Life after;
  after.begins().disk = [&](const TaskEvent& event) {
    if (event.kind != TaskEventKind::started) return Disk::takes;
    after.file.push_back(event);
    after.file.push_back(wrote(TaskEventKind::cancelled));
    return Disk::takes;
  };
  CHECK(after.granted().last(1) == Words{"gives back: it was cancelled"});
}

TEST_CASE("a task of an array that is cancelled just as it starts is cancelled itself") {
  Life life({}, kOfArray);
  life.begins().disk = [&](const TaskEvent& event) {
    life.array_cancelled = life.array_cancelled || event.kind == TaskEventKind::started;
    return Disk::takes;
  };
  CHECK(life.granted().fails(ErrorCode::not_now).last(4) ==
        Words{"writes started", "writes cancelled", "gives back: it was cancelled", "leaves"});
  CHECK(life.standing(false).phase == TaskPhase::cancelled);
}

TEST_CASE("a start that cannot be written, or not be read, is taken back, and the task waits again") {
  for (const Disk how : {Disk::refuses, Disk::torn}) {
    Life life;
    life.begins().disk = [&](const TaskEvent& event) {
      return event.kind == TaskEventKind::started ? how : Disk::takes;
    };
    CHECK(life.granted().last(3) == Words{"cannot write started", "writes cut_off", "gives back: disk full"});
    CHECK(life.fails(ErrorCode::failure, "disk full").last(2) ==
          Words{"writes put_off: disk full", "leaves"});
    CHECK(life.standing(false).phase == TaskPhase::waiting);
  }
  Life life;
  life.begins().reads = [] { return false; };
  CHECK(life.granted().last(3) == Words{"writes started", "writes cut_off", "gives back: no file"});
  CHECK(life.standing(false).phase == TaskPhase::waiting);
}

TEST_CASE("whoever asks twice whether to start is told yes once") {
  CHECK(Life().begins().granted().granted().last(1) == Words{"gives back: the task was started already"});
  CHECK(Life().begins().granted().ends_with(0).granted().last(1) ==
        Words{"gives back: the task was started already"});
  Life refused;
  refused.begins().file.push_back(wrote(TaskEventKind::cancelled));
  CHECK(refused.granted().granted().last(1) == Words{"gives back: the task was started already"});
}

TEST_CASE("what can never be ends the task, and all else puts it off") {
  for (const ErrorCode code : {ErrorCode::usage, ErrorCode::impossible}) {
    Life life;
    CHECK(life.begins().fails(code).last(3) == Words{"writes ended: why", "tells of its end", "fails: why"});
    CHECK(life.file.back().exit_status == outcome_of(code).exit_status);
  }
  for (const ErrorCode code :
       {ErrorCode::failure, ErrorCode::no_driver, ErrorCode::not_now, ErrorCode::timed_out})
    CHECK(Life().begins().fails(code).last(2) == Words{"writes put_off: why", "leaves"});
}

TEST_CASE("why it is put off is written once, in one line") {
  Life life;
  life.begins().fails(ErrorCode::failure, "no driver:\n  no card\n  no hope\n");
  CHECK(life.last(2) == Words{"writes put_off: no driver: no card; no hope", "leaves"});
  CHECK(life.begins().fails(ErrorCode::failure, "no driver:\n  no card\n  no hope\n").last(2) ==
        Words{"joins", "leaves"});
  CHECK(life.begins().fails(ErrorCode::failure, "no home\nand more").last(2) ==
        Words{"writes put_off: no home", "leaves"});
}

TEST_CASE("one that was cancelled in the queue is not put off, and its end is told") {
  Life life;
  life.begins().file.push_back(wrote(TaskEventKind::cancelled));
  CHECK(life.fails(ErrorCode::failure).last(2) == Words{"joins", "leaves"});
  Life never;
  never.begins().file.push_back(wrote(TaskEventKind::cancelled));
  CHECK(never.fails(ErrorCode::usage).last(3) == Words{"joins", "tells of its end", "fails: why"});
}

TEST_CASE("one whose program is not there has ended without a start, and no try of it is left") {
  Life life(job_that([](Job& job) { job.retries = 3; }));
  CHECK(life.begins().ends_with(127).last(3) == Words{"joins", "writes ended", "tells of its end"});
  CHECK(life.standing(false).phase == TaskPhase::ended);
}

TEST_CASE("one that fails is run again as often as its job says, and not if it was cancelled") {
  Life life(job_that([](Job& job) { job.retries = 1; }));
  CHECK(life.begins().granted().ends_with(3).last(3) ==
        Words{"writes ended", "writes retried", "tells of its end"});
  CHECK(life.begins().granted().ends_with(0, 9).last(2) == Words{"writes ended", "tells of its end"});

  Life cancelled(job_that([](Job& job) { job.retries = 1; }));
  cancelled.begins().granted().file.push_back(wrote(TaskEventKind::cancelled));
  CHECK(cancelled.ends_with(0, 15).last(2) == Words{"writes ended", "tells of its end"});
  CHECK(cancelled.standing(false).phase == TaskPhase::cancelled);
}

TEST_CASE("one that is ended for somebody who waits says so, has no try less, and waits again if it may") {
  const RunEnd way{.process = {0, 15}, .by = EndedBy::waiter, .waiter = "it gave way to bob"};
  Life life(job_that([](Job& job) { job.retries = 1; }));
  CHECK(life.begins().granted().ends(way).last(2) ==
        Words{"writes ended: it gave way to bob", "tells of its end"});
  Life again(job_that([](Job& job) { job.requeue = true; }));
  CHECK(again.begins().granted().ends(way).last(3) ==
        Words{"writes ended: it gave way to bob", "writes gave_way", "tells of its end"});
  CHECK(again.standing(false).excused_starts == 1);
  // It was cancelled while it gave way.
  Life cancelled(job_that([](Job& job) { job.requeue = true; }));
  cancelled.begins().granted().file.push_back(wrote(TaskEventKind::cancelled));
  CHECK(cancelled.ends(way).standing(false).phase == TaskPhase::cancelled);
}

TEST_CASE("one that somebody has released, or whose time is over, is run again only if its user asks") {
  for (const EndedBy by : {EndedBy::somebody, EndedBy::time}) {
    Life life(job_that([](Job& job) { job.retries = 1; }));
    CHECK(life.begins().granted().ends({.process = {0, 15}, .by = by}).last(2) ==
          Words{"writes ended", "tells of its end"});
  }
}

TEST_CASE("a run that others ended costs no try") {
  const auto with = [](std::vector<TaskEvent> before) {
    Life life(std::move(before));
    life.job.retries = 1;
    return life.begins().granted().ends_with(3).last(2);
  };
  const TaskEvent ended = wrote(TaskEventKind::ended);
  const TaskEvent retried = wrote(TaskEventKind::retried);
  const TaskEvent preempted = wrote(TaskEventKind::preempted);
  const Words again{"writes retried", "tells of its end"};
  CHECK(with({wrote_start(), ended, preempted}) == again);
  CHECK(with({wrote_start(), wrote(TaskEventKind::cut_off)}) == again);
  CHECK(with({wrote_start(), ended, retried}) == Words{"writes ended", "tells of its end"});
  CHECK(with({wrote_start(), ended, preempted, wrote_start(), ended, retried}) ==
        Words{"writes ended", "tells of its end"});
  CHECK(with({wrote_start(), ended, retried, wrote_start(), ended, wrote(TaskEventKind::again)}) ==
        Words{"writes ended", "tells of its end"});
}

TEST_CASE("one that runs again gets other devices, where that was asked") {
  CHECK(Life({wrote_start(true)}).begins().last(1) == Words{"joins"});
  Life life(job_that([](Job& job) { job.not_on_last_device = true; }));
  CHECK(life.begins().last(1) == Words{"joins"});
  life.file = {wrote_start(true)};
  CHECK(life.begins().last(1) == Words{"joins, not on 3"});
}

TEST_CASE("one that has failed gets whole devices, and one that was cut off or gave way does not") {
  constexpr const char* kWhole = "joins, with whole ones for memory of earlier runs";
  CHECK(Life().begins().last(1) == Words{"joins"});
  CHECK(Life({wrote_start(true)}).begins().last(1) == Words{"joins"});
  CHECK(
      Life({wrote_start(), wrote(TaskEventKind::ended), wrote(TaskEventKind::preempted)}).begins().last(1) ==
      Words{"joins"});
  CHECK(Life({wrote_start(), wrote(TaskEventKind::ended), wrote(TaskEventKind::retried)}).begins().last(1) ==
        Words{kWhole});
}

TEST_CASE("a full disk is told as the reason only where the command has failed") {
  Life well;
  CHECK(well.begins().granted().is(CommandEnded{{}, true}).last(2) ==
        Words{"writes ended", "tells of its end"});
  Life badly;
  CHECK(badly.begins().granted().is(CommandEnded{{.process = {1, 0}}, true}).last(2) ==
        Words{"writes ended: when it ended, the disk that its output is on was full", "tells of its end"});
}

TEST_CASE("if nobody knows how a command on another host ended, no other run of it begins") {
  Life life;
  CHECK(life.begins().granted().fails(ErrorCode::failure).last(2) == Words{"goes", "fails: why"});
  CHECK(life.standing(false).phase == TaskPhase::interrupted);
}

TEST_CASE("how much of the output is missing is written each time it has doubled, and at the end") {
  Life life;
  life.begins().granted().is(OutputMissing{0}).is(OutputMissing{100}).is(OutputMissing{199});
  CHECK(life.last(2) == Words{"goes", "writes output_cut"});
  CHECK(life.is(OutputMissing{200}).last(1) == Words{"writes output_cut"});
  CHECK(life.is(CommandEnded{{}, false, 201}).last(3) ==
        Words{"writes output_cut", "writes ended", "tells of its end"});
  CHECK(life.standing(false).cut_bytes == 201);
  // What the disk refused is written the next time.
  Life full;
  full.begins().granted().disk = [](const TaskEvent&) { return Disk::refuses; };
  CHECK(full.is(OutputMissing{100}).is(OutputMissing{100}).last(2) ==
        Words{"cannot write output_cut", "cannot write output_cut"});
}

TEST_CASE("whoever sees that the tenant has gone tells the runner, who may have been killed") {
  CHECK(Life().begins().granted().is(TenantGone{}).last(1) == Words{"tells the runner"});
  CHECK(Life().begins().granted().ends_with(0).is(TenantGone{}).last(1) == Words{"tells the runner"});
}

namespace {

/// Runs one after another of a task, as a runner starts them, of which anything may go wrong at any
/// point.
class History {
 public:
  void go() {
    const bool is_array = *rc::gen::arbitrary<bool>();
    life_.id = is_array ? kOfArray : kTask;
    life_.job.retries = static_cast<unsigned>(below(3));
    life_.job.requeue = *rc::gen::arbitrary<bool>();
    life_.job.rerun = *rc::gen::arbitrary<bool>();
    life_.meanwhile = [this] { meanwhile(); };
    life_.disk = [this](const TaskEvent&) { return happens(fault_at_) ? fault_ : Disk::takes; };
    life_.reads = [this] { return !happens(unread_at_); };
    const int runs = 1 + below(8);
    for (int i = 0; i < runs && life_.standing(false).phase == TaskPhase::waiting; ++i) run();
    // One that waits still starts once nothing more goes wrong.
    if (life_.standing(false).phase != TaskPhase::waiting) return;
    kill_at_ = cancel_at_ = fault_at_ = unread_at_ = -1;
    RC_ASSERT(life_.begins().granted().last(1) == Words{"goes"});
  }

 private:
  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  static bool happens(int& left) { return left-- == 0; }

  void meanwhile() {
    if (happens(cancel_at_)) cancel();
    if (happens(kill_at_)) throw Killed{};
  }
  void cancel() {
    if (life_.id.index) {
      life_.array_cancelled = true;
      // As `berth cancel` does for a task that runs.
      if (life_.standing().phase == TaskPhase::running) life_.file.push_back(wrote(TaskEventKind::cancelled));
    } else {
      life_.file.push_back(wrote(TaskEventKind::cancelled));
    }
  }

  void run() {
    kill_at_ = below(30);
    cancel_at_ = below(60);
    // One thing in a run goes wrong: where even the excuse cannot be written, nobody knows better.
    const int wrong = below(30);
    const bool is_read = *rc::gen::arbitrary<bool>();
    fault_at_ = is_read ? -1 : wrong;
    unread_at_ = is_read ? wrong : -1;
    fault_ = *rc::gen::element(Disk::refuses, Disk::torn);
    bool lost = false;
    try {
      life_.begins();
      if (std::holds_alternative<Queued>(life_.state.stage)) lost = !wait_in_queue();
    } catch (const Killed&) {
      return;
    }
    // A run that was not killed leaves nothing behind, except what the disk did not take at the
    // end.
    const bool untold = std::ranges::any_of(life_.did, [](const std::string& each) {
      return each.starts_with("cannot write ended") || each == "cannot write cancelled";
    });
    if (!lost && !untold) RC_ASSERT(life_.standing(false).phase != TaskPhase::interrupted);
  }

  // False: nobody knows how it ended.
  bool wait_in_queue() {
    const auto code = *rc::gen::element(ErrorCode::failure, ErrorCode::not_now, ErrorCode::impossible);
    if (below(4) == 0) {
      life_.fails(code);
      return true;
    }
    const bool was_cancelled = is_cancelled();
    const std::size_t before = life_.did.size();
    life_.granted();
    const auto answers = [&](const std::string& word) {
      return std::count_if(life_.did.begin() + static_cast<std::ptrdiff_t>(before), life_.did.end(),
                           [&](const std::string& each) { return each.starts_with(word); });
    };
    const auto goes = answers("goes");
    RC_ASSERT(goes + answers("gives back") == 1);
    if (goes == 0) {
      life_.fails(ErrorCode::failure, "it was refused");
      return true;
    }
    RC_ASSERT(!was_cancelled);
    check_start();
    if (below(8) == 0) {
      life_.fails(ErrorCode::failure);
      return false;
    }
    const EndedBy by = *rc::gen::element(EndedBy::itself, EndedBy::somebody, EndedBy::time, EndedBy::waiter);
    life_.ends({.process = {below(2)}, .by = by, .waiter = by == EndedBy::waiter ? "it gave way" : ""});
    return true;
  }

  bool is_cancelled() const {
    return life_.array_cancelled || std::ranges::any_of(life_.file, [](const TaskEvent& event) {
             return event.kind == TaskEventKind::cancelled;
           });
  }

  // Its start is written, and since the last command that began something has said that another
  // may.
  void check_start() {
    const auto is_start = [](const TaskEvent& event) { return event.kind == TaskEventKind::started; };
    const auto starts = std::ranges::count_if(life_.file, is_start);
    RC_ASSERT(starts > begun_starts_);
    if (begun_starts_ > 0) {
      std::ptrdiff_t seen = 0;
      bool may_again = false;
      for (const TaskEvent& event : life_.file) {
        if (is_start(event) && ++seen > begun_starts_) break;
        if (seen < begun_starts_) continue;
        may_again = may_again || (event.kind == TaskEventKind::retried && life_.job.retries > 0) ||
                    (event.kind == TaskEventKind::preempted && life_.job.requeue) ||
                    (event.kind == TaskEventKind::cut_off && life_.job.rerun);
      }
      RC_ASSERT(may_again);
    }
    begun_starts_ = starts;
  }

  Life life_{};
  int kill_at_ = -1;
  int cancel_at_ = -1;
  int fault_at_ = -1;
  int unread_at_ = -1;
  Disk fault_ = Disk::takes;
  std::ptrdiff_t begun_starts_ = 0;  ///< how many starts were in the file when a command last began
};

}  // namespace

TEST_CASE("whatever is killed, refused or cancelled at any point, no task starts twice and none is lost") {
  holds_for_any("any history", [] { History().go(); });
}

}  // namespace berth::task_run_step_test
