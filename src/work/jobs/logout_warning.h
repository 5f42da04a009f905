#pragma once

#include <optional>
#include <string>

namespace berth::jobs {

/// What happens to jobs that are submitted here when their user logs out, and what to do about it.
struct LogoutWarning {
  std::string what;
  std::string advice;
};
/// nullopt: as far as can be seen, the jobs go on.
std::optional<LogoutWarning> logout_warning();

}  // namespace berth::jobs
