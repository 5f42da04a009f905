#include "berth/sys/other_user.h"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>

#include "berth/base/fail.h"
#include "berth/sys/child.h"
#include "berth/sys/system_error.h"

namespace berth::sys {

Result<void> become_user(uid_t user, std::optional<gid_t> group) {
  if (::geteuid() == user && ::getuid() == user) return {};
  if (::geteuid() != 0) return fail(ErrorCode::failure, "only root can act for uid {}", user);
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* known = nullptr;
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &known) != 0) known = nullptr;
  if (!group && known != nullptr) group = known->pw_gid;
  if (!group) return fail(ErrorCode::failure, "the system knows no user with the uid {}", user);
  close_above_standard();
  const int groups = known != nullptr ? ::initgroups(known->pw_name, *group) : ::setgroups(0, nullptr);
  if (groups != 0 || ::setresgid(*group, *group, *group) != 0 || ::setresuid(user, user, user) != 0)
    return fail_errno(fmt::format("becoming uid {}", user));
  // Else its own /proc would be root's, and its user could not see what it holds.
  ::prctl(PR_SET_DUMPABLE, 1);
  return {};
}

}  // namespace berth::sys
