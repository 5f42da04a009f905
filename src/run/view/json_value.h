#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "berth/base/printable.h"
#include "berth/device/device.h"
#include "berth/view/layout.h"

// Shared by the sources of this layer that write JSON. No other code sees the JSON library.
namespace berth::view {

using Json = nlohmann::ordered_json;

template <class T>
Json nullable(const Reading<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// The same document, with every text as `printable_lines` gives it. People read documents too,
/// with `curl` and `jq -r`, and the page shows the texts as they come.
inline void make_printable(Json& json) {
  if (auto* text = json.get_ptr<std::string*>()) {
    *text = printable_lines(*text);
  } else if (json.is_structured()) {
    for (Json& part : json) make_printable(part);
  }
}

inline std::string dumped(Json json, Layout layout) {
  make_printable(json);
  return json.dump(layout == Layout::lines ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace berth::view
