// The file has no table of keys of its own: each key is an option, so both say the same.

#include <algorithm>
#include <vector>

#include "berth/base/fail.h"
#include "berth/cli/serve_options.h"
#include "berth/site/toml.h"
#include "berth/site/toml_words.h"
#include "berth/sys/file.h"

namespace berth::cli {
namespace {

std::vector<std::string_view> known_keys(const command::Syntax& syntax) {
  std::vector<std::string_view> names;
  for (const command::Option& each : syntax.options) {
    if (each.name != "config") names.push_back(each.name);
  }
  return names;
}

/// Sets one value. A list sets each of its values; `true` raises a flag.
Result<void> set(const command::Option& option, const toml::node& node) {
  const bool flag = option.value.empty();
  if (const auto* list = node.as_array(); list != nullptr && !flag) {
    for (const toml::node& each : *list) {
      BERTH_DO(set(option, each));
    }
    return {};
  }
  if (flag) {
    const auto* value = node.as_boolean();
    if (value == nullptr) return fail(ErrorCode::usage, "must be true or false");
    return value->get() ? option.set("") : Result<void>();
  }
  if (const auto* number = node.as_integer(); number != nullptr)
    return option.set(std::to_string(number->get()));
  const auto* text = node.as_string();
  if (text == nullptr) return fail(ErrorCode::usage, "must be a text in quotes");
  if (!option.choices.empty() && std::ranges::find(option.choices, text->get()) == option.choices.end())
    return fail(ErrorCode::usage, "must be one of {}", fmt::join(option.choices, ", "));
  return option.set(text->get());
}

}  // namespace

Result<void> read_serve_file(const std::string& path, const command::Syntax& syntax) {
  if (path.empty()) return {};
  BERTH_LET(const auto text, sys::read_named(path, 1, fmt::format("reading the settings in {}", path)));
  const toml::parse_result parsed = toml::parse(text);
  const auto wrong = [&](const toml::source_region& where, std::string_view what) {
    return fail(ErrorCode::failure, "{}:{}: {}", path, where.begin.line, what);
  };
  if (!parsed) {
    const toml::source_region& where = parsed.error().source();
    return wrong(where, site::words_of_bad_line(text, where.begin.line, parsed.error().description()));
  }
  for (const auto& [key, value] : parsed.table()) {
    const auto option = std::ranges::find(syntax.options, key.str(), &command::Option::name);
    if (option == syntax.options.end() || option->name == "config") {
      return wrong(value.source(),
                   site::unknown_key(key.str(), "", known_keys(syntax), "`berth serve --help`"));
    }
    if (auto result = set(*option, value); !result)
      return wrong(value.source(), fmt::format("{}: {}", key.str(), result.error().message));
  }
  return {};
}

}  // namespace berth::cli
