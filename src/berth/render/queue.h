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

/// A line a waiter, all of whom have their reasons, no more than style.width columns, or one sentence when
/// nobody waits.
std::string queue_table(const std::vector<Standing>& waiters, const Ledger& ledger, const Style& style);

/// The same of several hosts, with the host as the first column; then why a host tells nothing. A request
/// that waits on several hosts has one line, which says on how many, and of the one where it starts the
/// soonest.
std::string hosts_queue_table(const Hosts& hosts, const Style& style);

}  // namespace berth::render
