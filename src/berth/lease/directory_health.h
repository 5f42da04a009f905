#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/store/lease_directory.h"

namespace berth::leasing {

enum class Health { pass, warn, fail };

/// What a look at the lease directory found.
struct Finding {
  Health health = Health::pass;
  std::string check;   ///< what was looked at: "lease directory"
  std::string found;   ///< one sentence
  std::string remedy;  ///< what to do about it; "" when nothing is to be done
};

/// Whether the lease directory is as it should be: it can be used, nobody can remove others' tickets, it is
/// not full, every file in it is understood, and all users of this machine use the same directory. Changes
/// nothing.
std::vector<Finding> examine_lease_directory(const store::DirectoryChoice& choice);

/// Those of these findings that keep a process from seeing everybody's leases there.
std::vector<Finding> examine_view(const store::DirectoryChoice& choice);

/// Why not all users see the same files under /tmp, from the text of /proc/self/mountinfo; "" if they do.
/// Pure.
std::string private_tmp_reason(std::string_view mountinfo);

}  // namespace berth::leasing
