#pragma once

#include <string>

#include "berth/device/snapshot.h"
#include "berth/queue/standing.h"
#include "berth/view/text.h"

namespace berth::view {

/// Why the request waits: "1 of 4 free; GPU 3 leased alice 2 h, GPU 5 draining", without the
/// devices that it could never have, or "behind bob (train.py)".
std::string reason(const Standing& standing, const Snapshot& snapshot, const Style& style);

/// The same standing, with its reason in words.
Standing told(Standing standing, const Snapshot& snapshot, const Style& style);

}  // namespace berth::view
