#pragma once

#include <string>
#include <vector>

#include "berth/core/error.h"

namespace berth::store {

/// What `berth init` does: it makes /run/berth, from which only root can remove other users' tickets.
struct SiteDirectory {
  std::vector<std::string> done;     ///< what was done, one sentence each; empty: all was as it should be
  std::vector<std::string> trouble;  ///< what could not be done, or what the admin should know
};

/// Makes or repairs the lease directory of the machine, a file of root's for each of these devices, and the
/// line that makes all of it again at each boot. Leases go on meanwhile. `root` precedes every path: "" for
/// this machine. Error: `not_now` if the directory would be new and there are live tickets in /tmp/berth,
/// which users of the new directory would not see; not with `force`. REQUIRES: we are root.
Result<SiteDirectory> make_site_directory(const std::string& root, const std::vector<std::string>& uuids,
                                          bool force);

}  // namespace berth::store
