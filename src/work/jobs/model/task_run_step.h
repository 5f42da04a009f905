#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "berth/base/error.h"
#include "berth/job/job.h"
#include "berth/job/run_end.h"
#include "berth/job/task_standing.h"

// One run of a task, as a pure step: what has happened goes in, and what to do next comes out. The
// loop (src/work/jobs/task_run.cpp) does that and passes the result back in.
//
// The order is what counts. The lock comes first, so that nobody else has the task. That it is
// started is written, and on the disk, before the command begins, so that whoever is killed in
// between leaves a task that was never run twice. Whether somebody has cancelled it is read after
// that, so that one of both sees the other.
namespace berth::jobs::task_run {

// How far the run has come.

/// Nobody else has the task. What has happened to it is not known yet.
struct Locked {};
/// It is being written that an earlier run was cut off.
struct Excusing {};
/// It is being written that this process has the task.
struct Taking {};
/// It may stand in the queue.
struct Queued {
  std::string put_off_for;  ///< why it could not, the last time; "": it is the first time
};
/// Its GPUs are there. It is being written that its command begins.
struct Starting {
  std::string put_off_for;
  std::vector<std::string> devices;
};
/// Its GPUs go back, and its command does not begin.
struct StartRefused {
  std::string put_off_for;
};
/// Its command runs, or may run.
struct Running {};
/// How it ended is written, or why it did not begin.
struct Over {};
using Stage = std::variant<Locked, Excusing, Taking, Queued, Starting, StartRefused, Running, Over>;

struct State {
  Stage stage;
  std::uint64_t told_cut_bytes = 0;  ///< how many bytes of its output are missing, as is written
};

// What has happened.

/// The answer to Look and WriteAndLook.
struct Looked {
  TaskStanding standing;
  bool array_cancelled = false;  ///< the job was cancelled as a whole
  bool array_on_hold = false;    ///< the job is held as a whole
  bool is_outdated = false;      ///< the job has another request than the one with which this process began
};
/// Likewise: it could not be written or read. What should be written may be in the file all the
/// same.
struct NotLooked {
  Error error;
};
/// It has its GPUs, and asks whether to start. The answer is Go or Refuse.
struct Granted {
  std::vector<std::string> devices;
};
/// A look at the output: so many bytes of it are missing.
struct OutputMissing {
  std::uint64_t bytes = 0;
};
/// The answer to NoteCut: it is written.
struct CutNoted {
  std::uint64_t bytes = 0;
};
/// The program that the job was submitted for has ended.
struct TenantGone {};
/// The command has ended, or could not be started.
struct CommandEnded {
  RunEnd end;
  bool disk_is_full = false;
  std::uint64_t missing_bytes = 0;         ///< as OutputMissing
  std::optional<TaskStanding> standing{};  ///< before its end is written; nullopt: it cannot be read
  RunFigures figures{};
};
/// It left the queue without its GPUs, or it is not known how its command ended.
struct Failed {
  Error error;
  bool still_waits = false;  ///< the task has not been started, and nobody has cancelled it
};
using Event =
    std::variant<Looked, NotLooked, Granted, OutputMissing, CutNoted, TenantGone, CommandEnded, Failed>;

// What to do. Only the last of several actions has an answer.

/// Read what has happened to the task.
struct Look {};
/// Write this first, and read nothing if that fails.
struct WriteAndLook {
  TaskEvent event;
  bool durable = false;  ///< it is on the disk before anything else is done
};
/// Write this. If that fails, it is only said.
struct Note {
  TaskEvent event;
};
/// Write how much of the output is missing. The answer, if that went well, is CutNoted.
struct NoteCut {
  TaskEvent event;
};
/// Stand in the queue, and run the command. The answer is Granted, and then CommandEnded; or
/// Failed.
struct Join {
  std::vector<std::string> not_on;  ///< devices that it is not to get
  /// Earlier runs do not say how much memory it needs (--memory auto): with less than a whole
  /// device it has ended badly.
  bool on_whole_devices = false;
};
/// Start the command now.
struct Go {};
/// Do not start the command, and give the GPUs back. The answer is Failed.
struct Refuse {
  Error error;
};
/// Make sure that there is a runner, and that it looks at the task.
struct TellRunner {};
/// Send the notice of the start, if that is wanted.
struct TellStart {
  std::vector<std::string> devices;
};
/// The run is over. All that is due then belongs here: these events are written together, the
/// notice of the end is sent, and the runner is told.
struct End {
  std::vector<TaskEvent> events;  ///< none: how it ended is written already
};
/// End this process: the task is not to be run, or not now.
struct Leave {};
/// End this process with this error.
struct Fail {
  Error error;
};
using Action = std::variant<Look, WriteAndLook, Note, NoteCut, Join, Go, Refuse, TellRunner, TellStart, End,
                            Leave, Fail>;

struct Step {
  State state;
  std::vector<Action> actions;
};

/// The first step, once the task is locked.
Step begin();

/// `job`: of the task `id`. `self`: `taken`, with the process that runs the task.
Step next(const Job& job, TaskId id, const TaskEvent& self, State state, const Event& event);

}  // namespace berth::jobs::task_run
