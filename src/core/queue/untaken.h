#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/verdict/verdict.h"

// Which tickets do not take what is free for them. Such a ticket may be stopped, frozen, or unable
// to reach the gate. Nothing in the lease directory tells so. So each waiter judges by what it has
// seen itself.
namespace berth {

/// A ticket whose turn is before mine.
struct AbleBefore {
  TicketId id;
  std::uint32_t uid = 0;

  bool operator==(const AbleBefore&) const = default;
};

/// One which could have started at each look since then.
struct PassedUpStart {
  AbleBefore turn;
  std::chrono::milliseconds since;  ///< by the clock of the request that looks

  bool operator==(const PassedUpStart&) const = default;
};

/// By what it is judged that a ticket could start.
enum class FreeBy {
  driver,  ///< also by what the driver says
  leases,  ///< as if only leases kept tickets from devices
};

/// The tickets before `me` that could start now, in the order of their turns: each of them if those
/// before it took nothing. nullopt: even if none of them takes anything, `me` could not start.
/// Those `skipped` or held back are left out.
std::optional<std::vector<AbleBefore>> able_before(TicketId me, const Ledger& ledger, const Facts& facts,
                                                   Moment now, const std::set<TicketId>& skipped,
                                                   FreeBy free_by);

/// How long a look at these turns has to wait, in times of the patience, so that a thousand waiters
/// do not all look at once: for each ticket of one's own user, and for at most two of each other.
/// `unread`: so many more were not read. They count if the nearest that was read is of one's own
/// user, as in an array of jobs.
int count_to_wait_for(const std::vector<AbleBefore>& turns, std::uint32_t own_uid, std::size_t unread);

/// What is known after one more look, which found `turns`. If a ticket has left, those behind it
/// could not start before: their time begins now.
std::vector<PassedUpStart> seen_again(const std::vector<PassedUpStart>& before,
                                      const std::vector<AbleBefore>& turns, std::chrono::milliseconds now);

/// Those that do not answer: the first has left its turn for `patience`, the second for twice as
/// long, and so on. The second judges the first as we do, and needs that time to take its own turn.
/// If two of one user do not answer, the next ones of that user do not either, and need no time: a
/// user could else keep everybody waiting with many tickets.
std::set<TicketId> that_do_not_answer(const std::vector<PassedUpStart>& turns, std::chrono::milliseconds now,
                                      std::chrono::milliseconds patience);

/// Whoever lives starts within a tick. Before that people are told nothing.
inline constexpr std::int64_t kAnswersWithinS = 10;

/// What people are told of a ticket that could start: "free for it since 40 s, does not answer
/// (frozen by docker)". "": it has had too little time so far. One look from outside cannot know
/// since when a device is free, but for how long no lease has come or gone.
std::string silence_in_words(const Ticket& ticket, const Facts& facts, Moment now);

}  // namespace berth
