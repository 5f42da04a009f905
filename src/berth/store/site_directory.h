#pragma once

#include <string>
#include <vector>

#include "berth/core/error.h"

namespace berth::store {

/// What an administrator lays down once: /run/berth, which nobody but root can remove tickets from.
struct SiteDirectory {
  std::vector<std::string> done;     ///< one sentence each; empty: all was as it should be
  std::vector<std::string> trouble;  ///< what could not be done, or is to be known
};

/// Makes or mends the lease directory of the machine, a file of root's for each of these devices, and the
/// line that makes all of it again at each boot. What is leased meanwhile stays leased. `root` stands before
/// every path: "" for this machine. Error: `not_now` when it would be new, and live tickets in /tmp/berth are
/// such as those who use the new one would not see; not with `force`. REQUIRES: we are root.
Result<SiteDirectory> make_site_directory(const std::string& root, const std::vector<std::string>& uuids,
                                          bool force);

}  // namespace berth::store
