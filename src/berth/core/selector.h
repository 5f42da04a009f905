#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/snapshot.h"

namespace berth {

/// The places in snapshot.devices of what `selector` names, ascending; none if nothing. A selector is an
/// index
/// ("3"), a MIG instance ("3:1": slot 1 of GPU 3), a UUID or the beginning of one ("GPU-5d0b", also
/// "MIG-GPU-UUID/GI/CI"), or a PCI bus id ("0000:07:00.0", "07:00.0"). A GPU that is split by MIG stands for
/// its instances. A beginning that fits several devices names them all.
std::vector<std::size_t> devices_named(std::string_view selector, const Snapshot& snapshot);

/// The same for what a user typed. Error: `usage`, with what there is, when it names nothing or several.
Result<std::vector<std::size_t>> resolve_selector(std::string_view selector, const Snapshot& snapshot);

/// "0-3, 5, 6:1": the labels of these places.
std::string labels_of(const std::vector<std::size_t>& places, const Snapshot& snapshot);

/// The selectors of "0,1", "0-3" (the indices 0 to 3), "3:1" or "GPU-5a1c,GPU-77". Error: `usage`, when one
/// is empty or named twice.
Result<std::vector<std::string>> selectors_from_text(std::string_view text);

/// True if `selector` is a non-negative number.
bool is_index(std::string_view selector);

}  // namespace berth
