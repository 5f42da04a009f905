#pragma once

#include "berth/lab_queue/store_health.h"
#include "berth/lab_queue/store_place.h"

namespace berth::lab_queue {

/// Asks each member of the store what it says of itself, and tries as the user of `place` what an agent
/// does. Changes nothing. For a program that waits for it; no question takes more than a few seconds.
StoreSeen look_at_store(const StorePlace& place);

}  // namespace berth::lab_queue
