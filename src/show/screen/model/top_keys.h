#pragma once

#include "berth/screen/model/top.h"

namespace berth::view {

/// The effect of a key on the waiting job under the cursor: o holds it or lets it go, f and l put
/// it first or last. `berth edit` does it, and says what it costs.
TopDeed edit_job(TopView& view, const TopSight& sight, char32_t key);

}  // namespace berth::view
