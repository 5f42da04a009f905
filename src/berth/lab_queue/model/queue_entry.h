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

#include "berth/lab_queue/model/lab_copy.h"
#include "berth/verdict/limits.h"

// The place of one request in the lab queue, as the agent of its machine (lab_agent.h) knows it.
namespace berth::lab_agent {

/// Of a clock that nobody can set.
using Moment = std::chrono::nanoseconds;

// How far the request has come on a host that it has named.

/// It may not join the queue of the host.
struct Shut {};
/// It was told that it may.
struct Opened {
  enum class Reach {
    silent,       ///< it has not answered
    answers,      ///< it lives, and is about to join
    stands,       ///< it stands in the queue of the host
    passed_over,  ///< it was waited for in vain, and may still join
  };

  Moment since{};
  Reach reach = Reach::silent;
  /// Since when it is to let the host go. An older version does not, and stays as it was.
  std::optional<Moment> closing{};
};
/// The host cannot start it any more.
struct Left {};
using OnHost = std::variant<Shut, Opened, Left>;

struct NamedHost {
  std::string name;
  OnHost how{};
  bool is_let_go = false;  ///< it has said that nothing of it starts there: a start there is none
};

// What the request waits for.

/// To be told which hosts it may join, or to ask for a start.
struct Waits {};
/// It asks whether its command may start on this host, which grants it.
struct Asks {
  std::string host;
};
/// It was told yes for this host, and for no other: its command starts or runs there.
struct Runs {
  std::string host;
  bool asks_again = false;
};
using Stage = std::variant<Waits, Asks, Runs>;

// Whose limits apply to it.

/// The site has none over the lab.
struct NoLimits {};
/// The name service was asked.
struct LimitsAsked {
  Moment since{};
};
struct LimitsOf {
  Asker asker;
};
using LimitsApply = std::variant<NoLimits, LimitsAsked, LimitsOf>;

/// What it was told last.
struct Told {
  std::string limit{};
  std::optional<std::size_t> position{};
  bool is_silent = false;  ///< the store
};

struct QueueEntry {
  LabTicket kept;  ///< without its hosts; the order is the store's
  std::vector<NamedHost> hosts{};
  Stage stage{};
  LimitsApply limits{};
  Told told{};

  /// As it is to lie in the store.
  LabTicket ticket() const;
  LabStart start_on(std::string_view host, std::int64_t pid) const;

  /// nullptr: it has not named it.
  NamedHost* host(std::string_view name);
  /// The request has said that the host starts nothing of it: a yes for it was not passed on.
  void lets_go(NamedHost& host, OnHost how);
  /// A start that was made for this process on a host that the process has lost before its command
  /// could start there.
  bool has_lost(const LabStart& start, std::int64_t pid) const;
  /// Whether it is to let this host go.
  bool is_closing(std::string_view host) const;

  /// Whether it is known which limits apply. A request that runs needs none.
  bool is_ready() const;
  /// When it is told that the name service is late. nullopt: it is not, or that was told.
  std::optional<Moment> names_late() const;
};

/// How long the lab queue waits for requests that may join a host and do not: somebody has stopped
/// them, or means harm. Each is told `open` and `answer`, and answers `here` if it lives. If one of
/// these times was used up for a request, the user's next ones are waited for a moment only, for a
/// while: so many requests of one user cost the others hardly more than one. A request that is
/// passed over may still join.
class JoinPatience {
 public:
  /// Passes it over on the hosts for which it is waited for no longer.
  void pass_over(QueueEntry& place, Moment now);
  /// When there is the next one to pass over. nullopt: this one is not waited for.
  std::optional<Moment> next(const QueueEntry& place) const;

 private:
  using ByUser = std::map<std::uint32_t, Moment>;

  static bool is_awaited(const Opened& opened);
  bool is_known(const Opened& opened, std::uint32_t uid) const;
  Moment end_for(const Opened& opened, std::uint32_t uid) const;

  // When such a time was used up for a request of the user.
  ByUser silent_{};
  ByUser late_{};
};

}  // namespace berth::lab_agent
