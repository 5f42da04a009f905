#pragma once

#include <string>
#include <vector>

#include "berth/core/host.h"
#include "berth/core/standing.h"
#include "berth/render/table.h"
#include "berth/render/text.h"

namespace berth::render {

/// The table of a queue, and a row of it. `foresees`: any_start_is_known().
std::vector<Column> waiter_columns(bool foresees);
Row waiter_row(const Standing& waiter, const Ledger& ledger, bool foresees, const Style& style);
bool any_start_is_known(const std::vector<Standing>& waiters);

/// A line for each waiter, at most style.width columns; one sentence if nobody waits. REQUIRES: all waiters
/// have their reasons.
std::string queue_table(const std::vector<Standing>& waiters, const Ledger& ledger, const Style& style);

/// The same for several hosts, with the host as the first column; below that, why a host has told nothing. A
/// request that waits on several hosts has one line. It says on how many hosts the request waits, and shows
/// the host where it starts the soonest.
std::string hosts_queue_table(const Hosts& hosts, const Style& style);

}  // namespace berth::render
