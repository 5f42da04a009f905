#include "berth/base/record_fields.h"

#include "berth/base/text.h"

namespace berth {

Error malformed_field(std::string_view section, std::string_view key) {
  if (key.empty()) return {ErrorCode::failure, fmt::format("the section \"{}\" is out of place", section)};
  return {ErrorCode::failure, fmt::format("the value of \"{}\" is malformed", key)};
}

Result<void> check_record_version(std::string_view kind, unsigned found, unsigned known) {
  if (found == known) return {};
  // "berth-ticket" is the format of tickets.
  constexpr std::string_view kOurs = "berth-";
  if (kind.starts_with(kOurs)) kind.remove_prefix(kOurs.size());
  return fail(ErrorCode::failure, "written in version {} of the {} format; this program knows {}", found,
              kind, known);
}

}  // namespace berth
