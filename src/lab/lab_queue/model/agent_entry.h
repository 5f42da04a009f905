#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/record.h"
#include "berth/lab_queue/model/lab_copy.h"
#include "berth/verdict/site_policy.h"

// The entry of one request in the lab queue, as the agent of its machine (lab_agent_step.h) knows
// it.
namespace berth::lab_queue::lab_agent {

// How far the request has come on a host that it has named.

/// The request may not join the queue of the host.
struct Shut {};
/// The agent has told the request that it may join.
struct Opened {
  enum class Reach {
    silent,   ///< the request has not answered
    answers,  ///< the request lives, and is about to join
    stands,   ///< the request stands in the queue of the host
    skipped,  ///< nobody waits for the request any longer; it may still join
  };

  SteadyTime since{};
  Reach reach = Reach::silent;
  /// Since when the agent wants the request to let the host go.
  std::optional<SteadyTime> closing{};
};
/// The host cannot start it any more.
struct Left {};
using OnHost = std::variant<Shut, Opened, Left>;

struct NamedHost {
  std::string name;
  OnHost how{};
  bool is_let_go = false;   ///< the request starts nothing there: a start there does not count
  bool is_outside = false;  ///< no host of the lab: the store is told nothing of it
};

// How far the request has come in all.

/// It waits for hosts to be opened, or in their queues.
struct WaitsForHosts {};
/// This host has granted it GPUs, and it asks whether its command may start there.
struct Asks {
  std::string host;
};
/// The agent has said yes for this host, and for no other: its command starts or runs there.
struct Runs {
  std::string host;
  bool asks_again = false;
};
using Stage = std::variant<WaitsForHosts, Asks, Runs>;

// Whose limits apply to it.

/// The site has none over the lab.
struct NoLimits {};
/// The name service was asked.
struct LimitsAsked {
  SteadyTime since{};
};
struct LimitsOf {
  Asker asker;
};
using LimitsApply = std::variant<NoLimits, LimitsAsked, LimitsOf>;

/// What the agent has told the request last.
struct AgentTold {
  std::string limit{};  ///< why its user may not start it now; "": the user may
  std::optional<std::size_t> position{};
  bool is_silent = false;  ///< that the store does not answer
};

struct QueueEntry {
  LabTicket kept;  ///< without its hosts; the order is the store's
  std::vector<NamedHost> hosts{};
  Stage stage{};
  LimitsApply limits{};
  AgentTold told{};

  /// What the store is to have of the request.
  LabTicket ticket() const;
  LabStart start_on(std::string_view host, std::int64_t pid) const;

  /// nullptr: the request has not named this host.
  NamedHost* host(std::string_view name);
  /// The request has said that the host starts nothing of it: it has passed no yes on to that host.
  void lets_go(NamedHost& host, OnHost how);
  /// A start that was made for this process on a host that the process has lost before its command
  /// could start there.
  bool has_lost(const LabStart& start, std::int64_t pid) const;
  /// Whether the agent wants the request to let this host go.
  bool is_closing(std::string_view host) const;

  /// Whether it is known which limits apply. A request that runs needs none.
  bool is_ready() const;
  /// When to tell the request that the name service is late. nullopt: never, or it was told.
  std::optional<SteadyTime> names_late() const;
};

/// How long the lab queue waits for requests that may join a host and do not: somebody has stopped
/// them, or means harm. Each is told `open` and `answer`, and answers `here` if it lives. If one of
/// these times was used up for a request, nobody waits for any request of this user, for a while:
/// so many requests of one user cost the others as much as one. A request that is skipped, or that
/// nobody waits for, may still join.
class JoinPatience {
 public:
  /// Skips the request on the hosts on which nobody waits for it any longer, and says whether
  /// others wait for it at all.
  void skip(QueueEntry& entry, SteadyTime now);
  /// When the next host of this request is due to be skipped. nullopt: nobody waits for it.
  std::optional<SteadyTime> next(const QueueEntry& entry) const;

 private:
  using ByUser = std::map<std::uint32_t, SteadyTime>;

  static bool is_awaited(const Opened& opened);
  bool awaits(std::uint32_t uid, SteadyTime now) const;
  bool is_known(const Opened& opened, std::uint32_t uid) const;
  SteadyTime end_for(const Opened& opened, std::uint32_t uid) const;

  // When a request of this user was last waited for in vain.
  ByUser silent_{};
  ByUser late_{};
};

}  // namespace berth::lab_queue::lab_agent
