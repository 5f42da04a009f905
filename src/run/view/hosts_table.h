#pragma once

#include <string>
#include <vector>

#include "berth/machines/host.h"
#include "berth/queue/standing.h"
#include "berth/verdict/ledger.h"
#include "berth/view/text.h"

namespace berth::view {

/// What is free, by model; then a line for each host, and a line for each user. At most style.width
/// columns.
std::string hosts_table(const Hosts& hosts, const Style& style);

/// The table of a queue, and a row of it. `foresees`: any_start_is_known().
std::vector<Column> waiter_columns(bool foresees);
/// `names`: of the tickets of its machine.
Row waiter_row(const Standing& waiter, const ShortNames& names, bool foresees, const Style& style);
bool any_start_is_known(const std::vector<Standing>& waiters);

/// A line for each waiter, at most style.width columns; one sentence if nobody waits. REQUIRES: all
/// waiters have their reasons.
std::string queue_table(const std::vector<Standing>& waiters, const Ledger& ledger, const Style& style);

/// The table of the queue of a lab, and a row of it. A request that waits on several hosts has one
/// row, which says on how many hosts it waits and shows the host where it starts the soonest.
/// `lab`: the lab queue is known, and has a column. `names`: of the tickets of that host.
std::vector<Column> lab_waiter_columns(bool foresees, bool lab);
Row lab_waiter_row(const LabWaiter& waiter, const ShortNames& names, bool foresees, bool lab,
                   const Style& style);

/// A line for each request that waits on the hosts; below that, how many requests of the lab wait
/// on none of them yet, and why a host has told nothing.
std::string hosts_queue_table(const Hosts& hosts, const LabOrder& order, const Style& style);

}  // namespace berth::view
