#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
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

}  // namespace berth::leasing
