#pragma once

#include <span>

#include "berth/queue/backfill.h"

// The order by response ratio (highest response ratio next, Brinch Hansen, 1971): the one comes
// first that has waited longest in relation to how long it is expected to last.
namespace berth {

/// Among equals the order stays. REQUIRES: all are expected to last for some time.
void sort_by_response_ratio(std::span<const Wish*> wishes, Moment now);

/// Whether it has its turn first, whatever the ratios are, if it came first.
bool has_waited_longest(const Wish& wish, Moment now);

}  // namespace berth
