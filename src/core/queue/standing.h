#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/queue/schedule.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

namespace berth {

/// How a waiting ticket stands among its rivals. `berth queue`, a waiting `berth run` and the
/// messages between processes all tell this.
struct Standing {
  Ticket ticket{};
  /// 1: first of its rivals. Tickets far ahead that were not read count as rivals.
  std::size_t position = 1;
  std::optional<Ticket> behind{};  ///< the last rival before it; nullopt for the first
  bool stopped = false;            ///< others skip it until it goes on
  std::string silence{};  ///< it leaves what is free for it, in words (queue/acquisition.h); "": it does not
  std::chrono::seconds waited{0};  ///< how long the request has waited so far
  /// About when the request starts if each job with a time limit takes all of it, in seconds since
  /// the epoch. nullopt: a job that it waits for has no time limit, or the request is too far back
  /// in the queue. Where run times count: about as they are expected; nullopt: nobody can tell by
  /// them.
  std::optional<std::int64_t> starts_at_s{};
  /// Where run times count, and another rival comes first: from when on this request comes first,
  /// if those who wait go on waiting and nobody comes, in seconds since the epoch. nullopt: never,
  /// or nobody can say.
  std::optional<std::int64_t> first_from_s{};
  std::vector<std::string> starts_on{};  ///< with it: UUIDs of the devices on which it then starts
  /// It is to start before a rival that came earlier, since it fits into the gap before this one's
  /// reserved start: that start, in seconds since the epoch.
  std::optional<std::int64_t> fills_gap_until_s{};
  std::vector<std::string> fills_gap_on{};  ///< the GPUs with that gap
  /// Why the request is not granted what it asks for. In a listing of the queue, only the first of
  /// its rivals and those that are held back have verdicts.
  std::vector<Verdict> verdicts{};
  /// The limit that holds the request back, in words, whatever is free; "": none does.
  std::string limited{};
  /// The same in words, of run/view: "1 of 4 free; GPU 3 leased alice 2 h", "behind bob
  /// (train.py)".
  std::string reason{};
  /// Why nothing can be granted to it on this machine now, as the driver said; "" while the driver
  /// works.
  std::string hindrance{};

  bool operator==(const Standing&) const = default;
};

/// How long to stand in the queue.
struct Patience {
  bool wait = false;                               ///< false: now or not at all
  std::optional<std::chrono::milliseconds> limit;  ///< from the request's begin on; nullopt: for ever
  bool is_requeued = false;   ///< it had a lease and gave way, or had a place: so it may wait for any time
  bool was_accepted = false;  ///< earlier, as possible: a bad day does not refuse it
  std::chrono::milliseconds tick{5000};       ///< how often to look for changes that no event tells of
  std::chrono::milliseconds far_tick{30000};  ///< the same for a request with many before it
};

/// All tickets that wait, in order. A ticket in `stopped` counts as if it did not wait, and keeps
/// its place. A ticket does not have the conditions of its request. So the first ticket may wait
/// although its verdicts say that enough is free.
/// `only`: of these tickets, if it is not null; the others count as they do.
std::vector<Standing> standings(const Ledger& ledger, const Facts& facts,
                                const std::set<TicketId>& stopped = {}, Moment now = 0,
                                const std::set<TicketId>* only = nullptr);

/// The same for a request that would be made now, behind all of them. nullopt: it would wait behind
/// nobody.
std::optional<Standing> standing_behind(const Ticket& newcomer, const Ledger& ledger, const Facts& facts,
                                        const std::set<TicketId>& stopped, Moment now);

/// About when a request that would be made now starts, as Standing::starts_at_s. Of its candidates
/// only those count that are free, leased or draining: nobody knows when the others can be had.
std::optional<std::int64_t> expected_start(Ticket newcomer, const std::vector<Verdict>& verdicts,
                                           const Ledger& ledger, const Facts& facts,
                                           const std::set<TicketId>& stopped, Moment now);

/// Notes in the standing when it starts, and whether it fills a gap before one of these rivals that
/// came earlier. `starts`: as expected_starts.
void note_start(Standing& standing, const std::vector<const Ticket*>& before,
                const std::map<TicketId, ForeseenStart>& starts, std::int64_t booted_at_s);

/// Notes from when on it comes first, if another rival does so now and the order goes by run times.
/// `waiting`: all that wait.
void note_first_from(Standing& standing, const std::vector<const Ticket*>& waiting,
                     const std::set<TicketId>& stopped, Moment now, std::int64_t booted_at_s);

/// How a wait goes, in one line: "first in line for 5 min; 1 of 4 free; GPU 3 leased alice 2 h", or
/// "no. 3 in line for 5 min, behind bob (train.py)"; where its position may move, "2 before you now
/// for 5 min, behind bob".
std::string in_one_line(const Standing& standing);

/// Whoever may use the machine may fill the lease directory with tickets, and every document and
/// table about the machine goes to all others. So these have a bound for the tickets of one user:
/// about what this many bytes of JSON hold, which is 1,000 waiting requests on a machine of 16
/// GPUs. The rest is a number.
inline constexpr std::size_t kMostListedLeaseBytes = 1U << 20U;
inline constexpr std::size_t kMostListedWaitingBytes = 2U << 20U;
/// Of one user's odd tickets.
inline constexpr std::size_t kMostListedOdd = 64;

/// The ledger as documents and tables tell it: bounded, with Ledger::unlisted for the rest. Nobody
/// judges by it. Pure.
Ledger listed_part(const Ledger& ledger);
/// The odd tickets that people are told one by one, and how many more each user has. Pure.
struct OddListed {
  std::vector<OddTicket> odd;
  std::map<std::uint32_t, std::size_t> rest;
};
OddListed listed_odd(const Ledger& ledger);

/// How the waiting requests of `listed` stand among all of `ledger`: as standings, with their words
/// cut. Pure.
std::vector<Standing> listed_standings(const Ledger& ledger, const Ledger& listed, const Facts& facts,
                                       const std::set<TicketId>& stopped, Moment now);

/// A lease that is to end, and the ticket for which it ends.
struct Preemption {
  TicketId lease;
  TicketId waiter;

  bool operator==(const Preemption&) const = default;
};

/// The leases that yield and are to end now, so that waiting tickets that do not yield can start.
/// For each such ticket in turn, as few leases end as suffice, the youngest of them; none ends if
/// not even all of them would suffice. If a ticket could start anyway, no lease ends for it. A
/// lease that is ending already counts as gone, and so does one that has ended and whose memory is
/// not back. Only the first kMostPreempting tickets of the queue make leases end. Pure.
///
/// The fewest are found by trying sets of leases, small ones first. After kMostSetsTried sets in
/// all, two rules give a set each, and the smaller one ends: leases stay if they can, either the
/// oldest first, or those first that have the fewest devices for the ticket.
std::vector<Preemption> preemptions(const Ledger& ledger, const Facts& facts, Moment now,
                                    const std::set<TicketId>& skipped = {});
inline constexpr std::size_t kMostPreempting = 32;
inline constexpr std::size_t kMostSetsTried = 512;

/// A waiting request that would start later.
struct Delayed {
  TicketId waiter;
  std::int64_t start_s = 0;  ///< about when it starts now, in seconds of the boot clock

  bool operator==(const Delayed&) const = default;
};

/// The first request of the queue whose reservation would move to a later time if the lease had
/// this time limit. nullopt: none would. A site without backfill reserves nothing. Pure.
std::optional<Delayed> delayed_by_extension(const Ledger& ledger, const Facts& facts, Moment now,
                                            const std::set<TicketId>& skipped, TicketId lease,
                                            std::int64_t time_s);

/// The first request that waits for a device of the lease and came before it, where both go by run
/// times and the lease has a time limit: it was first for being short, so it stays so. nullopt:
/// there is none. Pure.
std::optional<TicketId> passed_by_its_limit(const Ledger& ledger, const std::set<TicketId>& skipped,
                                            TicketId lease);

}  // namespace berth
