#pragma once

#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/usage/past_leases.h"
#include "berth/view/layout.h"

namespace berth::view {

/// docs/schema/past-leases.json.
std::string recorded_leases_json(const RecordedLeases& recorded, Layout layout);
/// Reads it back into values, without trusting its writer. Error: `failure`, with the value that is
/// not valid.
Result<RecordedLeases> recorded_leases_from_json(std::string_view text);

}  // namespace berth::view
