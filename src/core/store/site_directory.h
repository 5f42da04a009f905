#pragma once

#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/store/lease_directory.h"

namespace berth::store {

/// What `berth init` does: it makes /run/berth, from which only root can remove other users'
/// tickets.
struct SiteDirectory {
  std::vector<std::string> done;     ///< what was done, one sentence each; empty: all was as it should be
  std::vector<std::string> trouble;  ///< what could not be done, or what the admin should know
};

/// Makes or repairs the lease directory of the machine, a file of root's for each of these devices,
/// and the line that makes all of it again at each boot. Leases go on meanwhile. `root` precedes
/// every path: "" for this machine. Error: `not_now` if the directory would be new and there are
/// live tickets in /tmp/berth, which users of the new directory would not see; not with `force`.
/// `boot_lines`: more lines of tmpfiles.d, each with its line feed.
/// REQUIRES: we are root.
Result<SiteDirectory> make_site_directory(const std::string& root, const std::vector<std::string>& uuids,
                                          bool force, const std::string& boot_lines = "");

/// The same for a machine on which nobody has called `berth init`, and only as far as safety asks
/// for it: the lease directory in use is root's from now on, so that nobody can remove other users'
/// tickets there. It is made if it is missing. REQUIRES: we are root.
Result<void> make_directory_of_root(const DirectoryChoice& choice);

}  // namespace berth::store
