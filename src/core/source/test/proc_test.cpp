#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "berth/source/proc/kernel_files.h"
#include "berth/source/proc/process_details.h"

namespace berth::source::proc_test {
namespace {

namespace fs = std::filesystem;

const std::string kId(64, 'a');

/// A folder that stands for /proc.
class FakeProc {
 public:
  FakeProc() {
    std::string pattern = fs::temp_directory_path() / "berth-proc-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~FakeProc() { fs::remove_all(root_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string root() const { return root_; }

 private:
  fs::path root_;
};

Process describe(const FakeProc& proc, std::uint32_t pid) {
  ProcessDetails details(proc.root());
  Process process;
  process.pid = pid;
  process.used_bytes = 5;
  details.fill(process);
  return process;
}

TEST_CASE("a process is told by its files") {
  const FakeProc proc;
  proc.write("7/stat", "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0\n");
  proc.write("7/status", "Name:\ta\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n");
  proc.write("7/cmdline", std::string("python3\0train.py\0--lr\0"
                                      "0.1\0\0\0",
                                      28));
  proc.write("7/cgroup", "0::/system.slice/docker-" + kId + ".scope\n");
  const Process process = describe(proc, 7);
  CHECK(process.uid == 1000U);
  CHECK(process.start_ticks == 123456U);
  CHECK(process.started_at_s > 0);
  CHECK(process.command == "python3 train.py --lr 0.1");
  CHECK(process.container == kId);
  CHECK(process.used_bytes == 5U);
}

// The flags of the kernel, with and without PF_EXITING.
std::string stat_of(unsigned pid, char state, bool exiting, unsigned threads) {
  return fmt::format("{} (a) {} 1 7 7 0 -1 {} 0 0 0 0 0 0 0 0 20 0 {} 0 123456 0 0\n", pid, state,
                     exiting ? 4228364 : 4228352, threads);
}

TEST_CASE("a process ends when all its threads exit, not when its first one does") {
  const FakeProc proc;
  const auto ends = [&](std::string_view first, std::string_view other) {
    proc.write("7/stat", std::string(first));
    proc.write("7/task/7/stat", std::string(first));
    proc.write("7/task/8/stat", std::string(other));
    return describe(proc, 7).ending.value_or(false);
  };
  const std::string runs = stat_of(8, 'R', false, 2);
  const std::string exits = stat_of(8, 'D', true, 2);
  CHECK_FALSE(ends(stat_of(7, 'S', false, 2), runs));
  CHECK_FALSE(ends(stat_of(7, 'Z', true, 2), runs));
  CHECK(ends(stat_of(7, 'Z', true, 2), exits));
  CHECK(ends(stat_of(7, 'D', true, 2), exits));
  proc.write("9/stat", stat_of(9, 'D', true, 1));
  proc.write("9/task/9/stat", stat_of(9, 'D', true, 1));
  CHECK(describe(proc, 9).ending.value_or(false));
}

TEST_CASE("a child that is not collected has ended") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t how{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT) == 0);
  ProcessDetails details;
  Process process;
  process.pid = static_cast<std::uint32_t>(child);
  details.fill(process);
  CHECK(process.ending.value_or(false));
  CHECK(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE("a process without arguments is called by its name") {
  const FakeProc proc;
  proc.write("7/stat", "7 (a (b) c) S 1\n");
  proc.write("7/cmdline", "");
  CHECK(describe(proc, 7).command == "a (b) c");
}

TEST_CASE("a process that is gone keeps what the driver said of it, and is missed") {
  const FakeProc proc;
  ProcessDetails details(proc.root());
  Process process;
  process.pid = 8;
  process.used_bytes = 5;
  const Process before = process;
  details.fill(process);
  CHECK(process == before);
  CHECK(details.missed_some());
}

TEST_CASE("files with nonsense give nothing") {
  const FakeProc proc;
  proc.write("7/stat", "nonsense");
  proc.write("7/status", "Uid:");
  proc.write("7/cgroup", "nonsense\n::\n");
  const Process process = describe(proc, 7);
  CHECK_FALSE(process.uid);
  CHECK_FALSE(process.start_ticks);
  CHECK(process.command.empty());
  CHECK(process.container.empty());
}

TEST_CASE("this very process can be described") {
  ProcessDetails details;
  Process process;
  process.pid = static_cast<std::uint32_t>(getpid());
  details.fill(process);
  CHECK(process.uid == getuid());
  CHECK_FALSE(process.command.empty());
  CHECK(process.started_at_s > 1'600'000'000);
}

TEST_CASE("containers are found in the cgroups that each engine makes") {
  struct Row {
    std::string text;
    std::string container;
  };
  for (const Row& row : {
           Row{"0::/\n", ""},
           Row{"0::/user.slice/user-1000.slice/session-3.scope\n", ""},
           Row{"0::/system.slice/docker-" + kId + ".scope\n", kId},
           Row{"12:memory:/docker/" + kId + "\n0::/system.slice/x.service\n", kId},
           Row{"0::/machine.slice/libpod-" + kId + ".scope/container\n", kId},
           Row{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope\n", kId},
           Row{"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-pod1.slice/cri-containerd-" + kId +
                   ".scope\n",
               kId},
           Row{"0::/kubepods/besteffort/pod3c-4d/" + kId + "\n", kId},
           Row{"0::/kubepods.slice/crio-" + kId + ".scope\n", kId},
           Row{"11:devices:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + kId + "\n",
               kId},
           Row{"0::/lxc.payload.web1/system.slice/cron.service\n", "web1"},
           Row{"4:cpu:/lxc/web1\n", "web1"},
           Row{"0::/docker/" + kId + "/docker/" + std::string(64, 'b') + "\n", std::string(64, 'b')},
           Row{"no colon at all", ""},
           Row{"", ""},
       }) {
    CAPTURE(row.text);
    CHECK(container_in_cgroup(row.text) == row.container);
  }
}

TEST_CASE("names of users come from the file, and from the name service only when asked") {
  const FakeProc etc;
  etc.write("passwd", "root:x:0:0::/root:/bin/sh\nbroken line\nalice:x:4242:1::/:\nalso:x:4242:1::/:\n:x:\n");
  UserNames names(etc.root() + "/passwd");
  CHECK(names.known(4242) == "alice");
  CHECK_FALSE(names.known(4000000000));
  CHECK(names.ask(4000000000).empty());
  CHECK(names.known(4000000000) == "");
  UserNames nobody(etc.root() + "/missing");
  CHECK_FALSE(nobody.known(0));
  CHECK(nobody.ask(0) == "root");
}

TEST_CASE("the machine's memory is what /proc/meminfo says") {
  const FakeProc proc;
  CHECK_FALSE(machine_memory(proc.root()));
  proc.write("meminfo", "MemTotal:       1024 kB\nMemFree:  1 kB\nMemAvailable:    512 kB\n");
  const auto memory = machine_memory(proc.root());
  REQUIRE(memory);
  CHECK(memory->total_bytes == 1U << 20U);
  CHECK(memory->available_bytes == 1U << 19U);
}

}  // namespace
}  // namespace berth::source::proc_test
