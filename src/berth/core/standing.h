#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/core/verdict.h"

namespace berth {

/// How a ticket that waits stands among its rivals. What is told of it, by the queue, by a wait and over the
/// wire, is this.
struct Standing {
  Ticket ticket{};
  /// 1: first of its rivals. Those far ahead that nobody has looked at count as rivals.
  std::size_t position = 1;
  std::optional<Ticket> behind{};  ///< the last rival before it; nullopt for the first
  bool stopped = false;            ///< others pass it over until it goes on
  std::chrono::seconds waited{0};  ///< of a wait that is told as it goes
  /// About when it starts if whoever has a time takes all of it, in seconds since the epoch. nullopt:
  /// somebody whom it waits for has no time, or it stands too far back.
  std::optional<std::int64_t> starts_at_s{};
  /// Why it is not granted what it asks for. In a queue: of the first of its rivals only.
  std::vector<Verdict> verdicts{};
  /// The same in words, made by render: "1 of 4 free; GPU 3 leased alice 2 h", "behind bob (train.py)".
  std::string reason{};

  bool operator==(const Standing&) const = default;
};

/// All who wait, in order. Those `stopped` count as if they did not wait, and keep their place. What a ticket
/// says of its request leaves its conditions out, so a first may wait although enough is free by its
/// verdicts.
std::vector<Standing> standings(const Ledger& ledger, const Facts& facts,
                                const std::set<TicketId>& stopped = {}, Moment now = 0);

/// The same of a request that would be made now, behind all of them. nullopt: it would not wait behind
/// anybody.
std::optional<Standing> standing_behind(const Ticket& newcomer, const Ledger& ledger, const Facts& facts,
                                        const std::set<TicketId>& stopped, Moment now);

/// How a wait goes, in one line: "first in line for 5 min; 1 of 4 free; GPU 3 leased alice 2 h", or "no. 3 in
/// line for 5 min, behind bob (train.py)".
std::string in_one_line(const Standing& standing);

}  // namespace berth
