#pragma once

#include <optional>
#include <string>

#include "berth/store/lease_store.h"

namespace berth::store {

/// The UUID of a device that `take` would give away a second time, according to the ledger. Every
/// store refuses that, whatever the plan says and whatever happened to the device's lock.
std::optional<std::string> contradiction(const Take& take, const Ledger& ledger);

}  // namespace berth::store
