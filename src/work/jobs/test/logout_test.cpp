#include "berth/jobs/model/submit_rules.h"

#include <doctest/doctest.h>

namespace berth::logout_test {
namespace {

constexpr const char* kSession = "9:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/\n";
constexpr const char* kManager = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n";

}  // namespace

TEST_CASE("a logout ends a login session only where logind is told so") {
  CHECK(logout_of(kSession, {}, "ada", false) == Logout::keeps);
  CHECK(logout_of(kSession, {"[Login]\n#KillUserProcesses=yes\n"}, "ada", false) == Logout::keeps);
  CHECK(logout_of(kSession, {"[Login]\n KillUserProcesses = yes \n"}, "ada", true) == Logout::ends_session);
  CHECK(logout_of(kSession, {"KillUserProcesses=yes", "KillUserProcesses=no"}, "ada", false) ==
        Logout::keeps);
}

TEST_CASE("a logout ends the session of those users only who are named") {
  CHECK(logout_of(kSession, {"KillUserProcesses=yes"}, "root", false) == Logout::keeps);
  CHECK(logout_of(kSession, {"KillUserProcesses=yes\nKillExcludeUsers=bob ada"}, "ada", false) ==
        Logout::keeps);
  CHECK(logout_of(kSession, {"KillUserProcesses=yes\nKillOnlyUsers=bob"}, "ada", false) == Logout::keeps);
  CHECK(logout_of(kSession, {"KillUserProcesses=yes\nKillOnlyUsers=bob"}, "bob", false) ==
        Logout::ends_session);
}

TEST_CASE("below the user's manager it is linger that counts") {
  CHECK(logout_of(kManager, {}, "ada", false) == Logout::ends_manager);
  CHECK(logout_of(kManager, {"KillUserProcesses=yes"}, "ada", true) == Logout::keeps);
  CHECK(logout_of("0::/system.slice/sshd.service\n", {"KillUserProcesses=yes"}, "ada", false) ==
        Logout::keeps);
}

}  // namespace berth::logout_test
