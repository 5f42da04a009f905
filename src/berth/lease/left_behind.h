#pragma once

#include <map>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/store/lease_store.h"

namespace berth::leasing {

/// What `berth run` calls itself when its command has ended and something that it started goes on.
inline constexpr const char* kLeftBehindName = "berth __left";

/// The leases whose command has ended, or whose taker has, with the processes that hold them still. A lease
/// is left out where nothing of that may be seen from here. For people: no decision depends on it.
std::map<TicketId, std::vector<Holder>> left_behind(store::LeaseStore& store, const Ledger& ledger);

}  // namespace berth::leasing
