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

bool JoinPatience::is_awaited(const StoreGuest& guest, const std::string& host) {
  return guest.opened.contains(host) &&
         std::ranges::find(guest.wanted.joined, host) == guest.wanted.joined.end();
}

bool JoinPatience::is_known(const StoreGuest& guest, const std::string& host) const {
  const ByUser& used_up = guest.answered.contains(host) ? late_ : silent_;
  const auto of_user = used_up.find(guest.who.uid);
  return of_user != used_up.end() && guest.opened.find(host)->second < of_user->second + kRemembered;
}

JoinPatience::Instant JoinPatience::end_for(const StoreGuest& guest, const std::string& host) const {
  const Instant opened = guest.opened.find(host)->second;
  if (is_known(guest, host)) return opened + kForKnown;
  return opened + (guest.answered.contains(host) ? kForJoined : kForHere);
}

void JoinPatience::pass_over(StoreGuest& guest, Instant now) {
  std::erase_if(guest.wanted.hosts, [&](const std::string& host) {
    if (!is_awaited(guest, host) || now < end_for(guest, host)) return false;
    if (!is_known(guest, host)) (guest.answered.contains(host) ? late_ : silent_)[guest.who.uid] = now;
    return true;
  });
}

JoinPatience::Instant JoinPatience::next(const std::vector<Guest>& guests) const {
  Instant next = Instant::max();
  for (const Guest& each : guests)
    for (const std::string& host : each->wanted.hosts)
      if (each->waits() && is_awaited(*each, host)) next = std::min(next, end_for(*each, host));
  return next;
}

}  // namespace berth::lab_queue
