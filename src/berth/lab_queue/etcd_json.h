#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/view/json_value.h"

// How etcd's JSON gateway writes: keys and values are base64, 64-bit numbers are texts, and what is
// zero is left out. For those who write and read its documents.
namespace berth::lab_queue {

view::Json request_of_range(std::string_view key);
/// Of all keys that begin so.
view::Json request_of_prefix(std::string_view prefix);
std::string on_one_line(const view::Json& json);

/// "" where there is none.
std::string text_at(const view::Json& object, std::string_view key);
/// 0 where there is none.
std::uint64_t number_at(const view::Json& object, std::string_view key);

/// The answer as an object. Error: `failure`, where it is no answer of etcd, or with the error that
/// it tells.
Result<view::Json> etcd_answer(std::string_view json);
std::unexpected<Error> is_not_etcd();
/// The error that the answer tells. "": it tells none.
std::string error_told(std::string_view json);

/// Values may be anything: what is nested deeper than this is not parsed.
inline constexpr std::size_t kDeepestOfStore = 16;

}  // namespace berth::lab_queue
