#pragma once

#include <string>
#include <string_view>

#include "berth/lab_queue/model/lab_copy.h"

// The texts of tickets and starts in the store of a lab, which agents of other versions read and
// write too (docs/store-protocol.md). Pure.
namespace berth::lab_queue {

/// The value as it is in the store.
std::string stored_text(const LabValue& value);
/// The value of this key. A text that is no ticket stays text; a start without a host is none.
LabValue read_stored_text(std::string_view key, std::string text);

}  // namespace berth::lab_queue
