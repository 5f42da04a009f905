#include "berth/core/record_fields.h"

#include <fmt/format.h>

namespace berth {

std::string_view shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  // Not inside a UTF-8 character: its later bytes look like 10xxxxxx.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

Error malformed_field(std::string_view section, std::string_view key) {
  if (key.empty()) return {ErrorCode::failure, fmt::format("the section \"{}\" is out of place", section)};
  return {ErrorCode::failure, fmt::format("the value of \"{}\" is malformed", key)};
}

Result<void> check_record_version(std::string_view kind, unsigned found, unsigned known) {
  if (found == known) return {};
  // "berth-ticket" is the format of tickets.
  constexpr std::string_view kOurs = "berth-";
  if (kind.starts_with(kOurs)) kind.remove_prefix(kOurs.size());
  return fail(ErrorCode::failure, fmt::format("written in version {} of the {} format; this program knows {}",
                                              found, kind, known));
}

}  // namespace berth
