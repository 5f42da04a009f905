#include "berth/hosts/ssh.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "berth/store/test/scratch_directory.h"
#include "berth/sys/process.h"

namespace berth::hosts::kept_connection_test {
namespace {

constexpr const char* kSettings =
    "host gpu1\nuser ada\nhostname 10.0.0.1\nport 22\ncontrolmaster false\nforwardagent no\n"
    "forwardx11 no\ngssapidelegatecredentials no\ntunnel false\nserveraliveinterval 0\ncontrolpersist no\n";

std::string with(std::string_view line, std::string_view instead) {
  std::string text = kSettings;
  return text.replace(text.find(line), line.size(), instead);
}

const auto kept = [](const std::string& settings, const std::string& folder = "/run/user/1000/berth") {
  return kept_connection(settings, folder, "desk");
};

/// Variables of this process, until it ends. "": not set.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& all) {
    for (const auto& [name, value] : all) {
      usual_.emplace(name, sys::variable(name.c_str()));
      set(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : usual_) set(name, value);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static void set(const std::string& name, const std::string& value) {
    if (value.empty())
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::map<std::string, std::string> usual_;
};

}  // namespace

TEST_CASE("a kept connection is made where there is none, and ends after a minute or with its network") {
  const auto found = kept(kSettings);
  REQUIRE(found);
  CHECK(found->socket.starts_with("/run/user/1000/berth/"));
  CHECK(found->options == std::vector<std::string>{"ControlMaster=auto", "ControlPath=" + found->socket,
                                                   "ControlPersist=60", "ServerAliveInterval=5",
                                                   "ServerAliveCountMax=2"});
  const auto own = kept(with("serveraliveinterval 0", "serveraliveinterval 30"));
  REQUIRE(own);
  CHECK(own->options.size() == 3);
}

TEST_CASE("a user who shares connections in ssh's own settings keeps these") {
  CHECK_FALSE(kept(with("controlmaster false", "controlmaster auto")));
  CHECK_FALSE(kept(with("controlpersist no", "controlpath /home/ada/cm\ncontrolpersist no")));
  CHECK_FALSE(kept(with("controlpersist no", "controlpersist 600")));
}

TEST_CASE("no connection is kept that has something of the login that made it") {
  CHECK_FALSE(kept(with("forwardagent no", "forwardagent yes")));
  CHECK_FALSE(kept(with("forwardagent no", "forwardagent $OTHER_AGENT")));
  CHECK_FALSE(kept(with("forwardx11 no", "forwardx11 yes")));
  CHECK_FALSE(kept(with("gssapidelegatecredentials no", "gssapidelegatecredentials yes")));
  CHECK_FALSE(kept(with("tunnel false", "tunnel point-to-point")));
}

TEST_CASE("another address, user or machine has another connection") {
  const auto one = kept(kSettings);
  CHECK(kept(kSettings) == one);
  CHECK(kept(with("10.0.0.1", "10.0.0.2"))->socket != one->socket);
  CHECK(kept(with("user ada", "user bob"))->socket != one->socket);
  CHECK(kept_connection(kSettings, "/run/user/1000/berth", "laptop")->socket != one->socket);
}

TEST_CASE("no connection is kept where ssh tells no settings, or could not use the path of the socket") {
  CHECK_FALSE(kept(""));
  CHECK_FALSE(kept(kSettings, ""));
  CHECK_FALSE(kept(kSettings, "/run/%u"));
  CHECK_FALSE(kept(kSettings, "/run/a b"));
  // With the name, and with what ssh adds to it, this is as long as the path of a socket may be.
  CHECK(kept(kSettings, std::string(73, 'x')));
  CHECK_FALSE(kept(kSettings, std::string(74, 'x')));
}

TEST_CASE("without a runtime folder the sockets are in the state folder, if others cannot change it") {
  const ScratchDirectory scratch;
  const auto folder = [](const char* home, const std::string& state) {
    const Variables variables({{"XDG_RUNTIME_DIR", ""}, {"HOME", home}, {"XDG_STATE_HOME", state}});
    return folder_of_kept();
  };
  const std::string state = scratch.path("state");
  CHECK(folder("/nowhere", state) == state + "/berth/ssh");
  for (const char* name : {"", "/berth", "/berth/ssh"})
    CHECK(std::filesystem::status(state + name).permissions() == std::filesystem::perms::owner_all);
  std::filesystem::remove_all(state + "/berth");
  std::filesystem::permissions(state, std::filesystem::perms::all);
  CHECK(folder("/nowhere", state).empty());
  CHECK_FALSE(std::filesystem::exists(state + "/berth"));
  const std::string home = scratch.path("home");
  std::filesystem::create_directory(home);
  // Whatever the umask is.
  std::filesystem::permissions(home, std::filesystem::perms::owner_all);
  CHECK(folder(home.c_str(), "") == home + "/.local/state/berth/ssh");
  CHECK(folder(home.c_str(), "relative") == home + "/.local/state/berth/ssh");
}

TEST_CASE("ssh is asked for its settings as it is called, and connects to nothing") {
  const SshProgram ssh = ssh_program("ssh -F lab.conf");
  const auto asked = ssh_settings(ssh, {"gpu1"}).arguments;
  CHECK(std::vector(asked.end() - 3, asked.end()) == std::vector<std::string>{"-G", "--", "gpu1"});
  auto called = ssh_command(ssh, {"gpu1"}, false).arguments;
  called.pop_back();
  called.insert(called.end() - 2, "-G");
  CHECK(asked == called);
  const auto shared = ssh_command(ssh, {"gpu1"}, false, {"ControlMaster=auto"}).arguments;
  CHECK(std::ranges::find(shared, "ControlMaster=auto") != shared.end());
  CHECK(shared.back() == "berth __envoy");
}

TEST_CASE("an ssh that shared a connection is called again alone, unless it says that it reaches no host") {
  CHECK(may_do_better_alone({255, 0}, "mux_client_request_session: read from master failed: Broken pipe"));
  CHECK(may_do_better_alone({255, 0}, ""));
  CHECK(may_do_better_alone({0, 9}, ""));
  CHECK_FALSE(may_do_better_alone({255, 0}, "ada@gpu1: Permission denied (publickey)."));
  CHECK_FALSE(may_do_better_alone({127, 0}, "sh: 1: berth: not found"));
}

}  // namespace berth::hosts::kept_connection_test
