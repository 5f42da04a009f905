#include <doctest/doctest.h>

#include <unistd.h>

#include <map>

#include "berth/sys/process.h"

namespace berth::sys::halted_test {
namespace {

using Files = std::map<std::string, std::string>;

std::optional<Halted> freezes(std::string_view cgroups, const Files& files) {
  return what_freezes(cgroups, [&](const std::string& path) -> std::optional<std::string> {
    const auto file = files.find(path);
    return file == files.end() ? std::nullopt : std::optional(file->second);
  });
}

TEST_CASE("a cgroup that is frozen, or below one that is, is named with what thaws it") {
  const Halted thawed_by_file{"frozen by its cgroup /batch", "echo 0 > '/sys/fs/cgroup/batch/cgroup.freeze'"};
  CHECK(freezes("0::/batch\n", {{"/batch/cgroup.freeze", "1\n"}}) == thawed_by_file);
  CHECK(freezes("0::/batch/job\n", {{"/batch/job/cgroup.freeze", "0\n"}, {"/batch/cgroup.freeze", "1\n"}}) ==
        thawed_by_file);
  CHECK_FALSE(freezes("0::/batch\n", {{"/batch/cgroup.freeze", "0\n"}}).has_value());
  CHECK_FALSE(freezes("0::/\n1:cpu:/batch\n", {{"/batch/cgroup.freeze", "1\n"}}).has_value());
}

TEST_CASE("the older freezer is known too, and of two cgroups the one that was frozen itself") {
  const Files files{{"/freezer/batch/job/freezer.state", "FROZEN\n"},
                    {"/freezer/batch/job/freezer.self_freezing", "0\n"},
                    {"/freezer/batch/freezer.state", "FROZEN\n"},
                    {"/freezer/batch/freezer.self_freezing", "1\n"}};
  CHECK(freezes("6:freezer:/batch/job\n0::/\n", files) ==
        Halted{"frozen by its cgroup /batch", "echo THAWED > '/sys/fs/cgroup/freezer/batch/freezer.state'"});
}

TEST_CASE("a container of docker is thawed by docker") {
  const std::string id(64, 'a');
  const std::string path = "/system.slice/docker-" + id + ".scope";
  CHECK(freezes("0::" + path + "\n", {{path + "/cgroup.freeze", "1\n"}}) ==
        Halted{"frozen by docker", "docker unpause aaaaaaaaaaaa"});
}

TEST_CASE("a name that a shell would read in another way is given to nobody") {
  const std::string path = "/batch/$(reboot)";
  CHECK(freezes("0::" + path + "\n", {{path + "/cgroup.freeze", "1\n"}}) ==
        Halted{"frozen by its cgroup", ""});
}

TEST_CASE("a process that goes on is halted by nothing") {
  CHECK_FALSE(what_halts(::getpid()).has_value());
}

}  // namespace
}  // namespace berth::sys::halted_test
