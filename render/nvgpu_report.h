#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/core/snapshot.h"

namespace berth::render {

/// What nvgpu's agent answers for its machine, key by key, as JSON. What is not known is null.
std::string nvgpu_report(std::string_view hostname, const Snapshot& snapshot, std::int64_t now_s);

/// What its master lists for a machine that it learnt nothing of.
std::string nvgpu_error(std::string_view message);

}  // namespace berth::render
