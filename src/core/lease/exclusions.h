#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/site/site_file.h"
#include "berth/verdict/site_policy.h"

namespace berth::leasing {

// The devices that `berth exclude` has taken out, in a file of their own beside the site file
// (SiteFilePaths::excluded): Berth never writes what people have written.

/// Takes the devices out from now on, with this reason in place of an earlier one, also after a
/// reboot. Error: `usage` for a reason that is not one line of text; `failure` if the file cannot
/// be read or written.
Result<void> exclude(const std::string& path, const std::vector<std::string>& uuids, std::string_view reason);

/// Ends that for these devices. False: none of them was taken out so. Error: `failure`, likewise.
Result<bool> end_exclusion(const std::string& path, const std::vector<std::string>& uuids);

/// For a request that waits: what `berth exclude` and `include` have written meanwhile.
class ExclusionNews {
 public:
  explicit ExclusionNews(site::SiteFilePaths paths) : paths_(std::move(paths)) {}

  /// All that is excluded by the site and by the user. `holds_some`: something is, as the caller
  /// knows. nullopt: the file is as at the last call, or there was none and is none; or a site file
  /// cannot be read, and what held before goes on.
  std::optional<std::vector<ExcludedDevice>> next(bool holds_some);

 private:
  site::SiteFilePaths paths_;
  using Version = std::array<std::int64_t, 3>;  ///< the file, and when it was written; zeros: none
  std::optional<Version> seen_{};               ///< nullopt: it was not looked for
};

}  // namespace berth::leasing
