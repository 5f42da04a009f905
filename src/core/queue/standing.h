#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/queue/host_queue.h"
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
  std::string silence{};           ///< it leaves what is free for it, in words (untaken.h); "": it does not
  std::chrono::seconds waited{0};  ///< how long the request has waited so far
  /// About when the request starts if each job with a time limit takes all of it, in seconds since
  /// the epoch. nullopt: a job that it waits for has no time limit, or the request is too far back
  /// in the queue. Where run times count: about as they are expected; nullopt: nobody can tell by
  /// them.
  std::optional<std::int64_t> starts_at_s{};
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
  /// The same in words, from the render layer: "1 of 4 free; GPU 3 leased alice 2 h", "behind bob
  /// (train.py)".
  std::string reason{};
  /// Why nothing can be granted to it on this machine now, as the driver said; "" while the driver
  /// works.
  std::string hindrance{};

  bool operator==(const Standing&) const = default;
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

/// How a wait goes, in one line: "first in line for 5 min; 1 of 4 free; GPU 3 leased alice 2 h", or
/// "no. 3 in line for 5 min, behind bob (train.py)"; where its position may move, "2 before you now
/// for 5 min, behind bob".
std::string in_one_line(const Standing& standing);

}  // namespace berth
