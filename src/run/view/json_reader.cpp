#include "berth/view/json_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::view {
void JsonReader::mark(std::string_view key, std::string_view what) const {
  if (!has_fault()) *fault_ = fmt::format("{}{}{} {}", place_, key.empty() ? "" : ".", key, what);
}

const Json* JsonReader::find(std::string_view key) const {
  if (has_fault()) return nullptr;
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

void JsonReader::needs(std::string_view key) const {
  if (find(key) == nullptr) mark(key, "is missing");
}

std::optional<std::string> JsonReader::maybe_text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(shortened(value->get_ref<const std::string&>(), kLongestText));
  mark(key, "must be a text");
  return std::nullopt;
}

std::optional<bool> JsonReader::maybe_flag(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  mark(key, "must be true or false");
  return std::nullopt;
}

std::optional<double> JsonReader::maybe_decimal(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  mark(key, "must be a number");
  return std::nullopt;
}

std::optional<std::int64_t> JsonReader::maybe_time(std::string_view key) const {
  const auto value = maybe<std::int64_t>(key);
  if (!value || (*value >= 0 && *value < kLatestSeconds)) return value;
  mark(key, "is no time");
  return std::nullopt;
}

std::optional<JsonReader> JsonReader::maybe_object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return JsonReader(*value, *fault_, place_ + "." + std::string(key));
}

Reading<bool> JsonReader::reading_flag(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr || !value->is_boolean() ? std::nullopt : Reading<bool>(value->get<bool>());
}

Reading<std::string> JsonReader::reading_text(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr || !value->is_string() ? std::nullopt : maybe_text(key);
}

Reading<std::int64_t> JsonReader::reading_time(std::string_view key) const {
  const auto time = reading<std::int64_t>(key);
  return time && *time >= 0 && *time < kLatestSeconds ? time : std::nullopt;
}

JsonReader JsonReader::part(std::string_view key) const {
  static const Json kNothing = Json::object();
  const Json* value = find(key);
  const bool is_object = value != nullptr && value->is_object();
  return {is_object ? *value : kNothing, *fault_, place_ + "." + std::string(key)};
}

std::vector<std::string> JsonReader::texts(std::string_view key) const {
  std::vector<std::string> texts;
  const Json* list = find(key);
  if (list == nullptr) return texts;
  if (!list->is_array() || list->size() > kLongestList) {
    mark(key, "must be a list of texts, and not so long");
    return texts;
  }
  for (const Json& entry : *list) {
    if (!entry.is_string()) {
      mark(key, "must be a list of texts");
      return texts;
    }
    texts.emplace_back(shortened(entry.get_ref<const std::string&>(), kLongestText));
  }
  return texts;
}

DocumentShape shape_of(std::string_view document) {
  DocumentShape shape;
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const char c = document[i];
    if (in_text) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_text = false;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == ',') {
      ++shape.values;
    } else if (c == '{' || c == '[') {
      ++shape.objects;
      shape.levels = std::max(shape.levels, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return shape;
}

Json json_from(std::string_view document) {
  constexpr std::size_t kDeepest = 16;
  return shape_of(document).levels > kDeepest ? Json() : Json::parse(document, nullptr, false);
}

}  // namespace berth::view
