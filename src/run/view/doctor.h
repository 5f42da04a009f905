#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/words.h"
#include "berth/view/text.h"

namespace berth::view {

enum class Level { pass, warn, fail };
constexpr auto words_of(Level) {
  return std::to_array<std::string_view>({"pass", "warn", "fail"});
}

/// The result of a check of `berth doctor`.
struct Finding {
  Level level = Level::pass;
  std::string check;   ///< what was looked at: "lease directory"
  std::string found;   ///< one sentence
  std::string remedy;  ///< what to do about it; "": nothing
};

/// A line a finding, its remedy below it, and a summary. `what_is`: not to be relied on where one
/// fails, with its verb: "leases or readings are".
std::string doctor_report(const std::vector<Finding>& findings, std::string_view what_is, const Style& style);

}  // namespace berth::view
