#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "berth/core/device.h"
#include "berth/core/printable.h"
#include "berth/render/json.h"

// What the sources of this layer that write JSON share. Nothing else sees the JSON library.
namespace berth::render {

using Json = nlohmann::ordered_json;

template <class T>
Json nullable(const Reading<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Every text in it as `printable_lines` has it. Documents are read by people too, by way of `curl` and `jq
/// -r`, and the page shows what it gets.
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

}  // namespace berth::render
