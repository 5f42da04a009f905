#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/hosts/channel.h"
#include "berth/hosts/envoy_messages.h"
#include "berth/hosts/lab_agent_link.h"
#include "berth/hosts/model/caller_step.h"
#include "berth/hosts/own_terminal.h"
#include "berth/queue/standing.h"
#include "berth/sys/clock.h"
#include "berth/sys/job_process.h"

namespace berth::hosts {

/// The entry of one request in the lab queue. If the agent ends and starts again, the request comes
/// back with the same mark and has the same entry.
class LabQueueEntry {
 public:
  /// `lane` and `gpus`: of the request (berth/machines/host.h). `hosts`: that could
  /// start it, without users. An agent that does not run at this moment is tried again and again.
  /// Error: as of LabAgentLink::open.
  static Result<LabQueueEntry> take(std::string socket, unsigned lane, unsigned gpus,
                                    std::vector<std::string> hosts);

  void add_to(std::vector<pollfd>& polled) const;
  sys::Deadline next_deadline() const;

  /// What the agent has said, in its order. Does not block for long.
  std::vector<caller::Event> poll();

  /// Says that the request stands in the queue of this host.
  void joined(const std::string& host);
  void left(const std::string& host);
  /// Says that the request has left the queue of a host and starts nothing there until it is opened
  /// again.
  void let_go(const std::string& host);
  /// Says that this host grants the request, and asks whether the command may start there.
  void ask_to_start(const std::string& host);
  /// Says that the command runs there, to an agent that has started since: it counts for its user.
  void runs_on(const std::string& host) { runs_on_ = host; }

 private:
  LabQueueEntry(std::string socket, std::string mark, unsigned lane, unsigned gpus,
                std::vector<std::string> hosts)
      : path_(std::move(socket)),
        mark_(std::move(mark)),
        lane_(lane),
        gpus_(gpus),
        hosts_(std::move(hosts)) {}
  /// The agent was not there at first, and was not reached since.
  struct Absence {
    Error why;
    bool is_told = false;
  };

  void come_back();
  void say_all();

  std::string path_, mark_;
  unsigned lane_, gpus_;
  std::vector<std::string> hosts_;
  std::set<std::string> joined_;
  std::set<std::string> let_go_;  ///< and not opened since
  std::string start_on_, runs_on_;
  std::optional<Absence> absence_;
  std::optional<LabAgentLink> link_;  ///< none: the agent has ended
  std::chrono::steady_clock::time_point next_try_{};
};

/// A text that nobody can guess, for EnvoyAsk::token. Error: the kernel gives none.
Result<std::string> secret_mark();

/// A command that has begun on another host, with our streams, signals and window.
class FarCommand {
 public:
  /// `look`: called again and again while the command runs; returns the latest moment for its next
  /// call. May be null. `entry`: of the request in the lab queue, to be kept; null: it has none.
  FarCommand(Channel& channel, SignalReader& signals, std::string_view token, bool terminal,
             std::function<std::chrono::steady_clock::time_point()> look, LabQueueEntry* entry)
      : channel_(channel),
        signals_(signals),
        terminal_(terminal),
        finder_(token),
        look_(std::move(look)),
        entry_(entry),
        own_terminal_(terminal) {}

  /// Serves the command until it has ended. Does not return if this process is told to end and
  /// cannot pass that on. Error: the connection is lost.
  Result<ProcessEnd> serve();

 private:
  /// What waits to be written to a stream of ours.
  struct Sink {
    int descriptor;
    std::string waiting{};
    bool closed = false;  ///< nobody reads there any more

    void write_some();
    void write_rest();
  };

  void wait();
  bool has_input();
  void fit_window() const;
  void read_input();
  void take_output();
  void pass_signals();
  void pass_on(const SignalReader::Signal& signal);
  bool has_all_come() const;
  [[noreturn]] void end_by(int signal);

  Channel& channel_;
  SignalReader& signals_;
  bool terminal_;
  EndFinder finder_;
  std::function<std::chrono::steady_clock::time_point()> look_;
  LabQueueEntry* entry_;  ///< null: none, or the agent does not know those who run
  OwnTerminal own_terminal_;
  Sink out_{1}, err_{2};
  bool has_input_ = false;  ///< what comes on standard input is for us
  bool input_has_ended_ = false;
  bool signal_waits_ = false;  ///< a signal was sent, and may not have left yet
  std::chrono::steady_clock::time_point heard_at_ = std::chrono::steady_clock::now();
};

/// Tells on the error stream how a wait in the queues of several hosts goes: on a terminal one live
/// line, elsewhere a line at each change. For the first second it tells nothing: often a host
/// grants the request within this time.
class HostQueuesReport {
 public:
  /// `hosts`: their names. `quiet`: it tells nothing.
  HostQueuesReport(std::string request_words, const std::vector<std::string>& hosts, bool quiet);

  /// The request stands like this on this host.
  void show(std::size_t host, Standing standing) { hosts_[host].standing = std::move(standing); }
  /// What was not told yet of how it stands there does not hold any more.
  void forget(std::size_t host) { hosts_[host].standing.reset(); }
  /// The request no longer waits on this host.
  void drop(std::size_t host, std::string why) { hosts_[host].why_out = std::move(why); }
  /// Tells what was not told yet, if it is time.
  void tell();
  /// When it is. nullopt: since a while.
  sys::Deadline next_deadline() const;
  /// Clears the live line.
  void end();

 private:
  struct AtHost {
    std::string name;
    std::string stands{};  ///< how it stands there, as told last; "": it does not wait there
    // What was not told yet.
    std::optional<Standing> standing{};
    std::optional<std::string> why_out{};
  };

  void tell_standing(AtHost& host, const Standing& standing);
  void tell_out(AtHost& host, const std::string& why);
  void begin();
  std::string all_lines() const;

  std::string request_words_;
  std::vector<AtHost> hosts_{};
  std::chrono::steady_clock::time_point first_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  bool quiet_;
  bool terminal_;
  bool begun_ = false;
};

}  // namespace berth::hosts
