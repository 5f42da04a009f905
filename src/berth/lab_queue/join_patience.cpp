#include "berth/lab_queue/join_patience.h"

#include <algorithm>

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

/// A request that lives answers from its loop, on this machine, however busy that is.
constexpr auto kForHere = 5s;
/// Longer than a connection by ssh takes, or than it takes to see that there is none.
constexpr auto kForJoined = 60s;
/// For a user of whom it is known that requests do not answer, or do not join.
constexpr auto kForKnown = 100ms;
constexpr auto kRemembered = 10min;

}  // namespace

bool JoinPatience::is_awaited(const LabConnection& connection, const std::string& host) {
  return connection.opened.contains(host) &&
         std::ranges::find(connection.wanted.joined, host) == connection.wanted.joined.end();
}

bool JoinPatience::is_known(const LabConnection& connection, const std::string& host) const {
  const ByUser& used_up = connection.answered.contains(host) ? late_ : silent_;
  const auto of_user = used_up.find(connection.who.uid);
  return of_user != used_up.end() && connection.opened.find(host)->second < of_user->second + kRemembered;
}

JoinPatience::Instant JoinPatience::end_for(const LabConnection& connection, const std::string& host) const {
  const Instant opened = connection.opened.find(host)->second;
  if (is_known(connection, host)) return opened + kForKnown;
  return opened + (connection.answered.contains(host) ? kForJoined : kForHere);
}

void JoinPatience::pass_over(LabConnection& connection, Instant now) {
  std::erase_if(connection.wanted.hosts, [&](const std::string& host) {
    if (!is_awaited(connection, host) || now < end_for(connection, host)) return false;
    if (!is_known(connection, host))
      (connection.answered.contains(host) ? late_ : silent_)[connection.who.uid] = now;
    return true;
  });
}

JoinPatience::Instant JoinPatience::next(const std::vector<Connection>& connections) const {
  Instant next = Instant::max();
  for (const Connection& each : connections)
    for (const std::string& host : each->wanted.hosts)
      if (each->waits() && is_awaited(*each, host)) next = std::min(next, end_for(*each, host));
  return next;
}

}  // namespace berth::lab_queue
