#include "berth/hosts/ssh.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "berth/hosts/own_terminal.h"

namespace berth::hosts::ssh_test {
namespace {

TEST_CASE("ssh asks nothing, and takes the name of a host for nothing else") {
  const auto command = ssh_command(ssh_program("ssh -F  lab.conf"), {"gpu1", "/opt/berth"}, false);
  CHECK(command.program == "ssh");
  const auto& words = command.arguments;
  CHECK(words[0] == "-F");
  CHECK(words[1] == "lab.conf");
  CHECK(std::ranges::find(words, "BatchMode=yes") != words.end());
  CHECK(words[words.size() - 3] == "--");
  CHECK(words[words.size() - 2] == "gpu1");
  CHECK(words.back() == "/opt/berth __envoy");
  CHECK(ssh_program("").words == std::vector<std::string>{"ssh"});
  const auto call = ssh_call(ssh_program(""), {"gpu1", "/opt/berth"}, "log 12").arguments;
  CHECK(std::vector(call.end() - 4, call.end()) ==
        std::vector<std::string>{"-n", "--", "gpu1", "/opt/berth log 12"});
}

TEST_CASE("why no envoy speaks is told with what to do") {
  struct Case {
    int status;
    std::string_view errors;
    std::string_view told;
  };
  for (const Case& each :
       {Case{255, "Host key verification failed.\r\n", "ssh gpu1 true once"},
        Case{255, "alice@gpu1: Permission denied (publickey).\n", "ssh-copy-id gpu1"},
        Case{255, "ssh: connect to host gpu1 port 22: Connection timed out", "on the network"},
        Case{255, "kex_exchange_identification: read: reset", "raise MaxStartups"},
        Case{255, "it says something new", "Try: ssh gpu1 true"},
        Case{127, "sh: 1: berth: not found\n", "Install Berth there"},
        Case{2, "berth: unknown command '__envoy'", "too old"}, Case{9, "", "exit status 9"}}) {
    const Error error = why_no_envoy({"gpu1"}, {each.status, 0}, each.errors, "");
    CAPTURE(error.message);
    CHECK(error.message.find(each.told) != std::string::npos);
  }
  const Error shut = why_no_envoy({"gpu1"}, {1, 0}, "", "This account is not available.\n");
  CHECK(shut.message.find("exit status 1 (This account is not available.)") != std::string::npos);
}

TEST_CASE("a server that turns away is asked again, and one that is not there or lets nobody in is not") {
  CHECK(is_turned_away({255, 0}, "kex_exchange_identification: Connection closed by remote host"));
  CHECK(is_turned_away({255, 0}, "ssh_exchange_identification: read: Connection reset by peer"));
  CHECK_FALSE(is_turned_away({255, 0}, "kex_exchange_identification: read: Connection timed out"));
  CHECK_FALSE(is_turned_away({255, 0}, "ssh: connect to host gpu1 port 22: Connection refused"));
  CHECK_FALSE(is_turned_away({255, 0}, "alice@gpu1: Permission denied (publickey)."));
  // What a program there prints and ends with is no matter of the connection.
  CHECK_FALSE(is_turned_away({1, 0}, "kex_exchange_identification: Connection closed by remote host"));
}

TEST_CASE("a command elsewhere gets the caller's variables, but for those of this machine and this login") {
  const std::vector<std::string> all{"PATH=/bin",  "HOME=/root",  "BERTH_LEASE=1",   "CUDA_VISIBLE_DEVICES=3",
                                     "SSH_TTY=/x", "MINE=1\n2",   "SLURM_JOB_ID=7",  "ROCR_VISIBLE_DEVICES=1",
                                     "DISPLAY=:0", "WANDB_KEY=x", "LD_PRELOAD=x.so", "XDG_RUNTIME_DIR=/run"};
  CHECK(*passed_environment("all", all) == std::vector<std::string>{"PATH=/bin", "MINE=1\n2", "WANDB_KEY=x"});
  CHECK(passed_environment("none", all)->empty());
  CHECK(*passed_environment("HOME,MINE", all) == std::vector<std::string>{"HOME=/root", "MINE=1\n2"});
  CHECK_FALSE(passed_environment("NOT_THERE", all));
}

TEST_CASE("an environment that no command could get is refused with its largest variable") {
  const std::vector<std::string> much{"BIG=" + std::string(1U << 20U, 'x'), "SMALL=1"};
  const auto refused = passed_environment("all", much);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::usage);
  CHECK(refused.error().message.find("BIG") != std::string::npos);
  CHECK(passed_environment("SMALL", much));
}

}  // namespace
}  // namespace berth::hosts::ssh_test
