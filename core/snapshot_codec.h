#pragma once

#include <string>
#include <string_view>

#include "berth/core/error.h"
#include "berth/core/snapshot.h"

namespace berth {

/// A snapshot as a "berth-snapshot 1" record. decode(encode(x)) == x.
std::string encode_snapshot(const Snapshot& snapshot);
Result<Snapshot> decode_snapshot(std::string_view text);

}  // namespace berth
