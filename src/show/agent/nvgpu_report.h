#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/verdict/verdict.h"

namespace berth::view {

/// What nvgpu's agent answers for its machine, with the same keys, as JSON. An unknown value is
/// null. A leased device is not available. If no process is seen on it, its lease's owner counts as
/// its user.
std::string nvgpu_report(std::string_view hostname, const Facts& facts, const Ledger& ledger,
                         std::int64_t now_s);

/// What nvgpu's master lists for a machine that does not answer.
std::string nvgpu_error(std::string_view message);

}  // namespace berth::view
