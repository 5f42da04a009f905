#pragma once

#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/usage/usage.h"
#include "berth/view/text.h"

namespace berth::view {

/// Said in place of a time that nobody has counted.
inline constexpr std::string_view kNoHostTells =
    "no host tells how its GPUs were used: the agent of a host counts that (`berth serve`)";

/// docs/schema/usage.json.
std::string usage_json(const Usage& usage, Layout layout);
/// Error: `failure` if the text is no such document, or is of another version.
Result<Usage> usage_from_json(std::string_view text);

/// The last line says what time the table is about, and what is missing in it.
std::string usage_table(const Usage& usage, const Style& style);

/// What is missing in it because no agent looked. "": next to nothing.
std::string unwatched_text(const Usage& usage);

/// docs/schema/history.json.
std::string device_history_json(const DeviceHistory& history, Layout layout);
/// Reads it back into values, without trusting its writer. Error: `failure`, with the value that is
/// not valid.
Result<DeviceHistory> device_history_from_json(std::string_view text);

/// docs/schema/past-leases.json.
std::string recorded_leases_json(const RecordedLeases& recorded, Layout layout);
/// Reads it back into values, without trusting its writer. Error: `failure`, with the value that is
/// not valid.
Result<RecordedLeases> recorded_leases_from_json(std::string_view text);

}  // namespace berth::view
