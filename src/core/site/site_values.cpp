#include "berth/site/site_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/request/request.h"

namespace berth::site {
namespace {

std::string_view line_of(std::string_view text, std::size_t line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

bool is_bare_text(std::string_view value) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("-_:./+%~@").contains(c);
  };
  return !value.empty() && std::ranges::all_of(value, fits);
}

// "2m" is two minutes, and "2M" two MiB.
std::string_view kind_of(std::string_view value) {
  const bool is_size = bytes_from_text(value).has_value();
  const bool is_time = seconds_from_text(value).has_value();
  const bool is_capital = value.back() >= 'A' && value.back() <= 'Z';
  if (is_time && !(is_size && is_capital)) return "a time";
  return is_size ? "a size" : "a text";
}

}  // namespace

std::string words_of_bad_line(std::string_view text, std::size_t line, std::string_view said) {
  std::string_view statement = line_of(text, line);
  statement = trimmed(statement.substr(0, statement.find('#')));
  const std::size_t sign = statement.find('=');
  if (sign == std::string_view::npos) return std::string(said);
  const std::string_view key = trimmed(statement.substr(0, sign));
  const std::string_view value = trimmed(statement.substr(sign + 1));
  if (!is_bare_text(key) || !is_bare_text(value)) return std::string(said);
  const std::string_view kind = kind_of(value);
  return fmt::format("{} = {}: {} needs quotes: {} = \"{}\"", key, value, kind, key, value);
}

std::string unknown_key(std::string_view key, std::string_view where, std::span<const std::string_view> known,
                        std::string_view list) {
  const std::string instead = instead_of(key, known);
  return fmt::format("unknown key '{}'{}{}{}", printable(key), where.empty() ? "" : " in ", where,
                     instead.empty() ? fmt::format("; {} lists the keys", list) : instead);
}

namespace {

constexpr std::int64_t kMostCounted = 10'000;

/// A time or a size. The commonest slip is a number alone.
Result<std::string> amount_of(const Page& page, const toml::node& node, std::string_view key,
                              std::string_view example) {
  if (node.is_number())
    return wrong(page, node,
                 fmt::format("{0} must be a text in quotes, with its unit: {0} = \"{1}\"", key, example));
  return text_of(page, node, key);
}

}  // namespace

std::unexpected<Error> wrong(const Page& page, const toml::node& node, std::string_view what) {
  return fail(ErrorCode::failure, "{}:{}: {}", page.path, node.source().begin.line, what);
}

Result<void> is_for_all(const Page& page, std::string_view key, const toml::node& node) {
  if (!page.only_narrow) return {};
  return wrong(page, node,
               fmt::format("only /etc/berth.toml may set {}: the rule is for the queue of all users", key));
}

Result<void> is_of_the_machine(const Page& page, std::string_view key, const toml::node& node) {
  if (!page.only_narrow) return {};
  return wrong(page, node, fmt::format("only /etc/berth.toml may set {}: it is about the machine", key));
}

Result<std::string> text_of(const Page& page, const toml::node& node, std::string_view key) {
  const auto* text = node.as_string();
  if (text == nullptr || text->get().empty()) {
    return wrong(page, node, fmt::format("{} must be a text in quotes", key));
  }
  return text->get();
}

Result<std::uint64_t> read_bytes(const Page& page, std::string_view key, const toml::node& node,
                                 std::uint64_t least, std::uint64_t now) {
  BERTH_LET(const auto text, amount_of(page, node, key, "512M"));
  const auto bytes = bytes_from_text(text);
  if (!bytes) return wrong(page, node, fmt::format("{}: {}", key, bytes.error().message));
  if (*bytes < least)
    return wrong(page, node,
                 fmt::format("{} must be a size from {} up, such as \"100M\"", key, bytes_for_people(least)));
  if (page.only_narrow && *bytes > now)
    return wrong(page, node,
                 fmt::format("{} may only be lowered here: the site allows {}", key, bytes_for_people(now)));
  return *bytes;
}

Result<std::optional<std::int64_t>> read_span(const Page& page, std::string_view key, const toml::node& node,
                                              std::optional<std::int64_t> now) {
  BERTH_LET(const auto text, amount_of(page, node, key, "2h"));
  std::optional<std::int64_t> seconds;
  if (text != "forever") {
    const auto parsed = delay_from_text(text);
    if (!parsed) return wrong(page, node, fmt::format("{}: {}, or \"forever\"", key, parsed.error().message));
    seconds = *parsed;
  }
  if (page.only_narrow && now && (!seconds || *seconds > *now)) {
    return wrong(
        page, node,
        fmt::format("{} may only be shortened here: the site says {}", key, duration_for_people(*now)));
  }
  return seconds;
}

Result<std::int64_t> read_seconds(const Page& page, std::string_view key, const toml::node& node,
                                  std::optional<std::int64_t> now) {
  BERTH_LET(const auto text, amount_of(page, node, key, "2h"));
  const auto seconds = seconds_from_text(text);
  if (!seconds) return wrong(page, node, fmt::format("{}: {}", key, seconds.error().message));
  if (!check_time(*seconds))
    return wrong(page, node, fmt::format("{} must be at least 1s and at most 365d", key));
  if (page.only_narrow && now && *seconds > *now)
    return wrong(page, node,
                 fmt::format("{} may only be shortened here: the site says {}", key, time_for_people(*now)));
  return *seconds;
}

Result<unsigned> read_number(const Page& page, std::string_view key, const toml::node& node,
                             std::int64_t most, std::optional<unsigned> now) {
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < 1 || number->get() > most)
    return wrong(page, node, fmt::format("{} must be a number from 1 to {}", key, most));
  const auto said = static_cast<unsigned>(number->get());
  if (page.only_narrow && now && said > *now)
    return wrong(page, node, fmt::format("{} may only be lowered here: the site allows {}", key, *now));
  return said;
}

Result<unsigned> read_count(const Page& page, std::string_view key, const toml::node& node,
                            std::string_view what) {
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < 0 || number->get() > kMostCounted)
    return wrong(page, node, fmt::format("{} must be a number of {}, 0 to {}", key, what, kMostCounted));
  return static_cast<unsigned>(number->get());
}

Result<bool> read_truth(const Page& page, std::string_view key, const toml::node& node) {
  const auto* value = node.as_boolean();
  if (value == nullptr) return wrong(page, node, fmt::format("{} is true or false", key));
  return value->get();
}

Result<void> read_texts(const Page& page, std::string_view key, const toml::node& node,
                        std::vector<std::string>& texts) {
  const auto* list = node.as_array();
  if (list == nullptr) return wrong(page, node, fmt::format("{} must be a list of texts in quotes", key));
  for (const toml::node& each : *list) {
    BERTH_LET(auto text, text_of(page, each, fmt::format("an entry of {}", key)));
    texts.push_back(std::move(text));
  }
  return {};
}

Result<void> read_names(const Page& page, std::string_view key, const toml::node& node,
                        std::vector<std::string>& names) {
  if (page.only_narrow) {
    return wrong(
        page, node,
        fmt::format("only /etc/berth.toml may set {}: a user's own file may only narrow the rules", key));
  }
  return read_texts(page, key, node, names);
}

}  // namespace berth::site
