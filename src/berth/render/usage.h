#pragma once

#include <string>
#include <string_view>

#include "berth/core/error.h"
#include "berth/core/usage.h"
#include "berth/render/json.h"
#include "berth/render/text.h"

namespace berth::render {

/// docs/schema/usage.json.
std::string usage_json(const Usage& usage, Layout layout);
/// Error: `failure`, when the text is no such document, or of another version.
Result<Usage> usage_from_json(std::string_view text);

/// With a last line that says what it is about and what is not in it.
std::string usage_table(const Usage& usage, const Style& style);

/// docs/schema/history.json.
std::string device_history_json(const DeviceHistory& history, Layout layout);
/// Read back into values. Whoever wrote it is not trusted. Error: `failure`, with what is no value of ours.
Result<DeviceHistory> device_history_from_json(std::string_view text);

}  // namespace berth::render
