#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/hosts/lab_agent_link.h"
#include "berth/hosts/model/caller_step.h"
#include "berth/sys/clock.h"

namespace berth::hosts {

/// The entry of one request in the lab queue. If the agent ends and starts again, the request comes
/// back with the same mark and has the same entry.
class LabQueueEntry {
 public:
  /// `lane` and `gpus`: of the request (berth/machines/lab_standing.h). `hosts`: that could
  /// start it, without users. An agent that does not run at this moment is tried again and again.
  /// Error: as of LabAgentLink::open.
  static Result<LabQueueEntry> take(std::string socket, unsigned lane, unsigned gpus,
                                    std::vector<std::string> hosts);

  void add_to(std::vector<pollfd>& polled) const;
  sys::Deadline next_deadline() const;

  /// What the agent has said, in its order. Does not block for long.
  std::vector<caller::What> poll();

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

}  // namespace berth::hosts
