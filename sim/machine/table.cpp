#include "machine/table.h"

#include <algorithm>
#include <charconv>

namespace berth::sim {
namespace {

std::string quoted(std::string_view key) {
  return "\"" + std::string(key) + "\"";
}

std::optional<std::uint64_t> parse_duration(std::string_view text) {
  double amount = 0;
  const char* end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, amount);
  if (parsed.ec != std::errc{} || amount < 0) return std::nullopt;
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  const double factor = unit == "us" ? 1.0 : unit == "ms" ? 1e3 : unit == "s" ? 1e6 : unit == "m" ? 6e7 : 0;
  if (factor == 0 || amount * factor > 1e15) return std::nullopt;
  return static_cast<std::uint64_t>(amount * factor);
}

}  // namespace

const toml::node* Table::take(std::string_view key) {
  known_.push_back(key);
  return table_.get(key);
}

void Table::wrong(std::string_view key, const std::string& what) {
  const toml::node* node = table_.get(key);
  problems_.add(node != nullptr ? node->source() : table_.source(), what);
}

std::optional<std::int64_t> Table::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const toml::value<std::int64_t>* value = node->as_integer();
  if (value == nullptr || value->get() < least || value->get() > most) {
    wrong(*node, quoted(key) + " must be a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most));
    return std::nullopt;
  }
  return value->get();
}

std::optional<double> Table::number(std::string_view key, double least, double most) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  std::optional<double> value = node->value<double>();
  if (!node->is_number() || !value || !(*value >= least && *value <= most)) {
    wrong(*node, quoted(key) + " must be a number from " + std::to_string(static_cast<std::int64_t>(least)) +
                     " to " + std::to_string(static_cast<std::int64_t>(most)));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Table::boolean(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const toml::value<bool>* value = node->as_boolean();
  if (value == nullptr) {
    wrong(*node, quoted(key) + " must be true or false");
    return std::nullopt;
  }
  return value->get();
}

std::optional<std::string> Table::text(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const toml::value<std::string>* value = node->as_string();
  if (value == nullptr) {
    wrong(*node, quoted(key) + " must be a text in quotes");
    return std::nullopt;
  }
  return value->get();
}

std::optional<std::uint64_t> Table::duration_us(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_string())
    if (auto parsed = parse_duration(value->get())) return parsed;
  if (node->is_number())
    if (auto seconds = node->value<double>(); seconds && *seconds >= 0 && *seconds <= 1e9)
      return static_cast<std::uint64_t>(*seconds * 1e6);
  wrong(*node, quoted(key) + " must be a duration such as \"500ms\", \"2s\" or a number of seconds");
  return std::nullopt;
}

std::optional<unsigned> Table::one_of(std::string_view key, std::initializer_list<std::string_view> names) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  std::string all;
  unsigned position = 0;
  for (std::string_view name : names) {
    if (const auto* value = node->as_string(); value != nullptr && value->get() == name) return position;
    all += (position++ == 0 ? "" : ", ") + quoted(name);
  }
  wrong(*node, quoted(key) + " must be one of " + all);
  return std::nullopt;
}

const toml::array* Table::array(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return nullptr;
  if (node->as_array() == nullptr) wrong(*node, quoted(key) + " must be a list in [ ]");
  return node->as_array();
}

std::vector<const toml::table*> Table::tables(std::string_view key) {
  std::vector<const toml::table*> result;
  const toml::node* node = take(key);
  if (node == nullptr) return result;
  if (const toml::array* array = node->as_array()) {
    for (const toml::node& element : *array) {
      if (const toml::table* table = element.as_table())
        result.push_back(table);
      else
        wrong(element, "[[" + std::string(key) + "]] must be a table");
    }
    return result;
  }
  wrong(*node, "write [[" + std::string(key) + "]], there can be several");
  return result;
}

void Table::finish() {
  for (auto&& [key, node] : table_)
    if (std::ranges::find(known_, key.str()) == known_.end())
      problems_.add(key.source(), "unknown key " + quoted(key.str()) + " in " + std::string(what_));
}

}  // namespace berth::sim
