#include "berth/queue/acquisition.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/queue/schedule.h"

namespace berth::acquisition {
namespace {

// Nobody replaces a driver and starts a job with it within so short a time. Where short jobs follow
// each other, a turn comes sooner, and a program that loads the driver takes longer than all else.
constexpr std::chrono::milliseconds kSessionLasts{1000};

}  // namespace

bool loads_anew(const DriverSession& session) {
  return std::holds_alternative<ToLoadAnew>(session) || std::holds_alternative<Failing>(session);
}

bool is_young(const DriverSession& session, std::chrono::milliseconds now) {
  const auto* loaded = std::get_if<Loaded>(&session);
  return loaded != nullptr && now - loaded->since < kSessionLasts;
}

DriverSession before_grant(const DriverSession& session, std::chrono::milliseconds now) {
  const bool is_loaded =
      std::holds_alternative<Loaded>(session) || std::holds_alternative<LoadedLongAgo>(session);
  return is_loaded && !is_young(session, now) ? ToLoadAnew{} : session;
}

DriverSession after_answer(const DriverSession& session, std::chrono::milliseconds now) {
  if (std::holds_alternative<LoadedLongAgo>(session)) return session;
  if (!std::holds_alternative<Loaded>(session)) return Loaded{now};
  return is_young(session, now) ? session : LoadedLongAgo{};
}

DriverSession after_failure(const DriverSession& session, std::chrono::milliseconds now) {
  return std::holds_alternative<Failing>(session) ? session : Failing{now};
}

GateAnswer answer_in_gate(FoundInGate found, FactsAre facts, Means means) {
  const bool is_current = facts == FactsAre::current;
  // Where leases come and go faster than the driver answers, no look is ever of now: others, or a
  // user who makes it seem so, would keep a free device from everybody.
  if (found == FoundInGate::granted && facts == FactsAre::older_than_a_lease && means.last_attempt)
    return GateAnswer::take_and_look;
  // Else old facts may refuse what they show as taken, and never grant.
  if (found == FoundInGate::granted) return is_current ? GateAnswer::take : GateAnswer::look_again;
  if (!is_current && !means.last_attempt) return GateAnswer::look_again;
  if (!means.waits) return GateAnswer::withdraw;
  return found == FoundInGate::held_back ? GateAnswer::wait_held_back : GateAnswer::wait;
}

}  // namespace berth::acquisition

namespace berth {
namespace {

// Of a user. One may be slow by chance.
constexpr int kJudgedOfAUser = 2;

}  // namespace

std::optional<std::vector<AbleBefore>> able_before(TicketId me, const Ledger& ledger, const Facts& facts,
                                                   Moment now, const std::set<TicketId>& skipped,
                                                   FreeBy free_by) {
  QueueState queue = host_queue_of(ledger, facts, now, skipped).state;
  if (free_by == FreeBy::leases)
    std::erase_if(queue.holds, [](const Hold& hold) { return hold.owner == TicketId{}; });
  std::vector<AbleBefore> turns;
  for (const std::size_t at : able_to_start(queue, facts.policy.queue)) {
    const Wish& wish = queue.wishes[at];
    if (wish.id == me) return turns;
    turns.push_back({wish.id, wish.uid});
  }
  return std::nullopt;
}

int count_to_wait_for(const std::vector<AbleBefore>& turns, std::uint32_t own_uid, std::size_t unread) {
  const bool is_own_before = !turns.empty() && turns.back().uid == own_uid;
  int count = is_own_before ? static_cast<int>(unread) : 0;
  std::map<std::uint32_t, int> of_user;
  for (const AbleBefore& turn : turns) {
    if (turn.uid == own_uid || of_user[turn.uid]++ < kJudgedOfAUser) ++count;
  }
  return count;
}

std::vector<PassedUpStart> seen_again(const std::vector<PassedUpStart>& before,
                                      const std::vector<AbleBefore>& turns, std::chrono::milliseconds now) {
  const auto [still, kept] = std::ranges::mismatch(before, turns, {}, &PassedUpStart::turn);
  std::vector<PassedUpStart> seen(before.begin(), still);
  std::ranges::transform(kept, turns.end(), std::back_inserter(seen),
                         [now](const AbleBefore& turn) { return PassedUpStart{turn, now}; });
  return seen;
}

std::set<TicketId> that_do_not_answer(const std::vector<PassedUpStart>& turns, std::chrono::milliseconds now,
                                      std::chrono::milliseconds patience) {
  std::set<TicketId> silent;
  std::map<std::uint32_t, int> judged_of;
  int judged = 0;
  for (const auto& [turn, since] : turns) {
    int& of_user = judged_of[turn.uid];
    if (of_user < kJudgedOfAUser) {
      if (now - since < (judged + 1) * patience) break;
      ++of_user;
      ++judged;
    }
    silent.insert(turn.id);
  }
  return silent;
}

std::string silence_in_words(const Ticket& ticket, const Facts& facts, Moment now) {
  const std::int64_t seconds = std::min(facts.leases_unchanged_s, (now - joined_at(ticket)) / kSecond);
  if (seconds < kAnswersWithinS) return "";
  const auto frozen = facts.frozen.find(ticket.id);
  return fmt::format("free for it since {}, does not answer{}", duration_for_people(seconds),
                     frozen == facts.frozen.end() ? "" : fmt::format(" ({})", frozen->second));
}

}  // namespace berth
