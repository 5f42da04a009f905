#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "berth/base/error.h"
#include "berth/jobs/model/job_output.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::jobs {

/// The terminal of a task, kept by its process. What it shows goes into the log, and to all
/// terminals that are attached to it; what is typed at any of these is typed here. A thread of its
/// own does that, whatever the process waits for. The command never waits for an attached terminal,
/// and for the log only as a command without a terminal does.
class JobTerminal {
 public:
  explicit JobTerminal(sys::PseudoTerminal terminal);
  JobTerminal(const JobTerminal&) = delete;
  JobTerminal& operator=(const JobTerminal&) = delete;
  ~JobTerminal() { end(); }

  /// As JobCommand::terminal.
  int of_command() const { return terminal_.theirs.get(); }
  /// The command is about to start. From now on the terminal can be reached at the socket `path`.
  /// `log`: gets what the terminal shows. Error: `failure`. REQUIRES: it was not called before; the
  /// lock of the task.
  Result<void> begin(const std::string& path, int log);
  /// The command has ended: what it has printed is in the log when this returns.
  void write_out();
  /// Nobody is attached any more.
  void end();

 private:
  struct Attached {
    sys::Descriptor socket;
    ShownTo shown{};
    bool has_size = false;  ///< it has told that of its window
    bool gone = false;
  };
  /// What the thread waits for.
  struct Waiting;

  void work();
  Waiting to_wait_for();
  void serve(const Waiting& ready);
  bool take_shown();
  void note(std::string_view shown);
  void write_log(std::string_view shown);
  void let_in();
  void hear(Attached& from);
  void resize(const WindowSize& size, bool is_first_of_it);
  void pass_keys();
  static void send_to(Attached& to, const RecentlyShown& recent);
  void forget_those_gone();
  void say_goodbye();

  sys::PseudoTerminal terminal_;
  sys::Descriptor wake_;  ///< wakes the thread
  std::string path_;      ///< of the socket; "": it has not begun
  int log_ = -1;
  std::thread thread_;

  std::mutex mutex_;  ///< guards all below
  sys::Descriptor listening_;
  std::vector<Attached> attached_;
  RecentlyShown recent_;
  std::string typed_;             ///< keys that the terminal has not taken yet
  std::uint64_t not_logged_ = 0;  ///< bytes, since the disk took them last
  bool is_deaf_ = false;          ///< nobody can be let in for a moment
  bool is_over_ = false;
};

/// The socket at which the terminal of a task is reached. It lies beside the files of the job, in a
/// folder that only their user can enter. A message is one packet of
/// src/work/jobs/model/job_output.h, or a piece of what the terminal shows.

/// Makes the socket anew and listens, without blocking. REQUIRES: the lock of the task. Error:
/// `failure`.
Result<sys::Descriptor> listen_for_terminals(const std::string& path);
/// A connection of the user of this process. Empty: there is none, or somebody else's.
sys::Descriptor accept_terminal(int listening);
/// Error: `failure`, with errno's reason; nobody listens there.
Result<sys::Descriptor> connect_to_terminal(const std::string& path);

}  // namespace berth::jobs
