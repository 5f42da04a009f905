#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "berth/core/device.h"
#include "berth/render/json.h"

// What the sources of this layer that write JSON share. Nothing else sees the JSON library.
namespace berth::render {

using Json = nlohmann::ordered_json;

template <class T>
Json nullable(const Reading<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

inline std::string dumped(const Json& json, Layout layout) {
  return json.dump(layout == Layout::lines ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace berth::render
