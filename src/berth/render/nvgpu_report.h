#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/core/verdict.h"

namespace berth::render {

/// What nvgpu's agent answers for its machine, key by key, as JSON. What is not known is null. One that is
/// leased is not available, and its lease's owner uses it where no process shows.
std::string nvgpu_report(std::string_view hostname, const Facts& facts, const Ledger& ledger,
                         std::int64_t now_s);

/// What its master lists for a machine that it learnt nothing of.
std::string nvgpu_error(std::string_view message);

}  // namespace berth::render
