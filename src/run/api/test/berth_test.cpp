// The library against a simulated machine: this program plays the host, and the berth beside it
// asks the driver.

#include "berth/api/berth.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "berth/api/test/simulated_machine.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/sys/socket.h"

namespace berth::berth_test {
namespace {

TEST_CASE("a host looks, picks, and is told why") {
  const SimulatedMachine machine;
  const auto seen = snapshot();
  if (!seen) FAIL(seen.error().message);
  CHECK(seen->devices.size() == 2);
  const auto wanted = request(1, "free>=20G");
  REQUIRE(wanted.has_value());
  const auto choice = pick(*wanted);
  if (!choice) FAIL(choice.error().message);
  CHECK(choice->devices.size() == 1);
  CHECK(choice->visible_devices == "0");
  const auto verdicts = why(*request(1, "temp>200"));
  REQUIRE(verdicts.has_value());
  REQUIRE(verdicts->size() == 2);
  CHECK(verdicts->front().verdict.failed == Clause::thresholds);
  CHECK(verdicts->front().device.index == 0);
  CHECK(pick(*request(1, "temp>200")).error().code == ErrorCode::not_now);
  CHECK(pick(*request(3)).error().code == ErrorCode::impossible);
  CHECK(request(1, "free>=").error().code == ErrorCode::usage);
}

TEST_CASE("a lease by the memory of earlier runs is a whole device where none are known") {
  const SimulatedMachine machine;
  ::setenv("XDG_STATE_HOME", "/dev/null/nowhere", 1);
  Request wanted;
  wanted.shared = true;
  wanted.promise_bytes = kMemoryByRuns;
  CHECK(pick(wanted).error().code == ErrorCode::usage);
  const auto whole = lease(wanted);
  if (!whole) FAIL(whole.error().message);
  REQUIRE(whole->notes().size() == 1);
  CHECK(whole->notes().front().starts_with("--memory auto: a whole GPU"));
  for (const auto& [name, value] : whole->variables()) CHECK(name != "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  ::unsetenv("XDG_STATE_HOME");
}

TEST_CASE("a lease is ours until it is released, and says what to set") {
  const SimulatedMachine machine;
  auto both = lease(*request(2), {.note = "a test"});
  if (!both) FAIL(both.error().message);
  CHECK(both->visible_devices() == "0,1");
  CHECK(both->devices().size() == 2);
  CHECK(both->id().size() == 16);
  const auto refused = lease(*request(1));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::not_now);
  CHECK(refused.error().message.find("GPU 0,1  leased by") != std::string::npos);
  REQUIRE(refused.error().findings.size() == 2);
  CHECK(refused.error().findings[1].verdict.failed == Clause::not_leased);
  CHECK(refused.error().findings[1].verdict.reason.find("a test") != std::string::npos);
  both->release();
  both->release();
  CHECK(lease(*request(2)).has_value());
}

TEST_CASE("the variables of a share bound it where MPS runs") {
  const SimulatedMachine machine;
  Request share = *request(2);
  share.shared = true;
  share.promise_bytes = 10ULL << 30;
  share.mps_percent = 30;
  const auto held = lease(share);
  if (!held) FAIL(held.error().message);
  const auto value_of = [&](const std::string& name) -> std::string {
    for (const auto& [known, value] : held->variables()) {
      if (known == name) return value;
    }
    return "";
  };
  CHECK(value_of("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") == "0=10240M,1=10240M");
  CHECK(value_of("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") == "30");
  CHECK(held->variables().front().first == "CUDA_VISIBLE_DEVICES");
}

TEST_CASE("a fork of the host holds the lease, and a program that it starts does not") {
  const SimulatedMachine machine;
  auto both = lease(*request(2));
  REQUIRE(both.has_value());
  const pid_t fork_of_host = ::fork();
  if (fork_of_host == 0) {
    for (;;) ::pause();
  }
  const pid_t program = ::fork();
  if (program == 0) {
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(1);
  }
  // The program has begun when it has its own name.
  while (sys::process_command(program).find("sleep") == std::string::npos) ::usleep(1000);
  {
    const Lease gone = std::move(*both);
  }
  CHECK_FALSE(lease(*request(1)).has_value());
  ::kill(fork_of_host, SIGKILL);
  ::waitpid(fork_of_host, nullptr, 0);
  CHECK(lease(*request(2)).has_value());
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
}

TEST_CASE("a host waits in the queue without blocking") {
  const SimulatedMachine machine;
  auto both = lease(*request(2));
  REQUIRE(both.has_value());
  auto first = LeaseWait::start(*request(2), {.note = "first", .wait = std::nullopt});
  REQUIRE(first.has_value());
  std::optional<Standing> standing;
  while (!standing) {
    first->sleep();
    standing = first->look().value();
  }
  CHECK(standing->position == 1);
  CHECK_FALSE(standing->behind);
  CHECK(in_one_line(*standing).starts_with("first in line; 0 of 2 free"));
  auto second = LeaseWait::start(*request(1), {.wait = std::nullopt});
  for (standing.reset(); !standing; standing = second->look().value()) second->sleep();
  CHECK(standing->position == 2);
  REQUIRE(standing->behind);
  CHECK(standing->behind->taker.pid == static_cast<std::uint32_t>(::getpid()));
  CHECK(standing->behind->note == "first");
  first->cancel();
  both->release();
  while (second->lease() == nullptr) {
    second->sleep();
    REQUIRE(second->look().has_value());
  }
  CHECK(second->lease()->ordinals() == std::vector<std::optional<std::size_t>>{0});
  CHECK(lease(*request(2), {.wait = std::chrono::milliseconds(1)}).error().code == ErrorCode::timed_out);
}

TEST_CASE("a lease that may not be waited for is refused while somebody stays in the gate") {
  const SimulatedMachine machine;
  lease(*request(1))->release();
  const char* path = std::getenv("BERTH_DIR");
  const int gate = ::open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(gate, LOCK_EX) == 0);
  const auto refused = lease(*request(1), {.wait = std::chrono::milliseconds(0)});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::not_now);
  CHECK(refused.error().message.contains(std::to_string(::getpid())));
  ::close(gate);
  CHECK(lease(*request(1)).has_value());
}

TEST_CASE("a wait whose helper is stopped is skipped") {
  const SimulatedMachine machine;
  auto all = lease(*request(2));
  REQUIRE(all.has_value());
  auto first = LeaseWait::start(*request(2), {.wait = std::nullopt});
  for (std::optional<Standing> standing; !standing; standing = first->look().value()) first->sleep();
  const auto helpers = sys::pids_of(sys::ProcessTree().below(::getpid()));
  auto second = LeaseWait::start(*request(1), {.wait = std::nullopt});
  for (std::optional<Standing> standing; !standing; standing = second->look().value()) second->sleep();
  // Whoever is stopped in the gate keeps everybody out of it: that is another scene.
  const int gate = ::open(std::getenv("BERTH_DIR"), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(gate, LOCK_EX) == 0);
  for (const pid_t helper : helpers) {
    ::kill(helper, SIGSTOP);
    siginfo_t stopped{};
    ::waitid(P_PID, static_cast<id_t>(helper), &stopped, WSTOPPED | WNOWAIT);
  }
  ::close(gate);
  all->release();
  while (second->lease() == nullptr) {
    second->sleep();
    REQUIRE(second->look().has_value());
  }
  for (const pid_t helper : helpers) ::kill(helper, SIGCONT);
  second->lease()->release();
  while (first->lease() == nullptr) {
    first->sleep();
    REQUIRE(first->look().has_value());
  }
}

/// Waits until what earlier scenes have started has ended, so that the next to end is of this one.
void collect_all_children() {
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

TEST_CASE("a grant that comes as the wait is cancelled is held by no fork that has the socket") {
  collect_all_children();
  const SimulatedMachine machine;
  auto wait = LeaseWait::start(*request(2), {});
  REQUIRE(wait.has_value());
  siginfo_t helper{};
  REQUIRE(::waitid(P_ALL, 0, &helper, WEXITED | WNOWAIT) == 0);
  const pid_t fork_of_host = ::fork();
  if (fork_of_host == 0) {
    for (;;) ::pause();
  }
  wait->cancel();
  CHECK(lease(*request(2)).has_value());
  ::kill(fork_of_host, SIGKILL);
  ::waitpid(fork_of_host, nullptr, 0);
}

/// A process with a pid of one's choice, which is not a child of ours and answers until it is
/// killed.
class Stranger {
 public:
  /// Choosing a pid needs root.
  explicit Stranger(pid_t pid) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0) return;
    const pid_t between = ::fork();
    if (between == 0) start(pid);
    int status = 0;
    ::waitpid(between, &status, 0);
    ::close(ends_[1]);
    started_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  ~Stranger() { ::close(ends_[0]); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  bool has_started() const { return started_; }
  bool answers() const {
    char byte = '?';
    return ::send(ends_[0], &byte, 1, MSG_NOSIGNAL) == 1 && ::read(ends_[0], &byte, 1) == 1;
  }

 private:
  [[noreturn]] void start(pid_t pid) const {
    ::close(ends_[0]);
    clone_args how{};
    how.exit_signal = SIGCHLD;
    how.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
    how.set_tid_size = 1;
    const auto made = ::syscall(SYS_clone3, &how, sizeof how);
    char byte = '?';
    while (made == 0 && ::read(ends_[1], &byte, 1) == 1 && ::write(ends_[1], &byte, 1) == 1) {
    }
    ::_exit(made >= 0 ? 0 : 1);
  }

  int ends_[2] = {-1, -1};
  bool started_ = false;
};

TEST_CASE("cancelling a wait signals nobody who has got the pid of its helper") {
  collect_all_children();
  const SimulatedMachine machine;
  auto wait = LeaseWait::start(*request(1), {});
  REQUIRE(wait.has_value());
  const pid_t helper = ::waitpid(-1, nullptr, 0);  // as a host does that waits for any child
  REQUIRE(helper > 0);
  const Stranger stranger(helper);
  if (!stranger.has_started()) {
    MESSAGE("skipped: needs the right to choose a pid");
    return;
  }
  wait->cancel();
  CHECK(stranger.answers());
}

TEST_CASE("a lease that was released tells its receipt once") {
  const SimulatedMachine machine;
  auto held = lease(*request(2));
  if (!held) FAIL(held.error().message);
  CHECK(held->receipt() == std::nullopt);
  held->release(Ending::badly);
  held->release();
  const auto told = held->receipt();
  REQUIRE(told.has_value());
  CHECK(told->contains(held->id()));
  CHECK(told->contains("\"ending\": \"badly\""));
  CHECK(held->receipt() == std::nullopt);
  CHECK(machine.record().contains("\tending=badly\t"));
}

TEST_CASE("a lease inside of one of the same program leaves no receipt of its own") {
  const SimulatedMachine machine;
  auto outer = lease(*request(2));
  if (!outer) FAIL(outer.error().message);
  ::setenv("BERTH_LEASE", outer->path().c_str(), 1);
  auto inner = lease(*request(1));
  ::unsetenv("BERTH_LEASE");
  if (!inner) FAIL(inner.error().message);
  inner->release();
  CHECK(inner->receipt() == std::nullopt);
  outer->release();
  CHECK(outer->receipt().has_value());
}

TEST_CASE("a host that is killed leaves a receipt, which does not say that all went well") {
  const SimulatedMachine machine;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t host = ::fork();
  if (host == 0) {
    const auto held = lease(*request(2));
    const char has = held ? 'y' : 'n';
    (void)!::write(ends[1], &has, 1);
    for (;;) ::pause();
  }
  char has = '?';
  REQUIRE(::read(ends[0], &has, 1) == 1);
  CHECK(has == 'y');
  ::kill(host, SIGKILL);
  ::waitpid(host, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  while (!machine.record().ends_with('\n')) ::usleep(10'000);
  CHECK(machine.record().contains("\tending=by_others\t"));
  CHECK(lease(*request(2)).has_value());
}

/// The process that keeps the receipts, once it has its name.
pid_t receipt_keeper(const SimulatedMachine& machine) {
  while (machine.receipt_keepers().empty()) ::usleep(10'000);
  return machine.receipt_keepers().front();
}

TEST_CASE("one process keeps the receipts of all leases of a user, and ends soon after the last") {
  const SimulatedMachine machine;
  auto first = lease(*request(1));
  auto second = lease(*request(1));
  if (!first || !second) FAIL("no lease");
  first->release();
  CHECK(first->receipt().has_value());
  second->release();
  CHECK(second->receipt().has_value());
  CHECK(machine.receipt_keepers().size() == 1);
  while (!machine.receipt_keepers().empty()) ::usleep(10'000);
  CHECK(std::ranges::count(machine.record(), '\n') == 2);
}

/// A request that has waited until this lease was released, and has its own now.
auto waited_for(Lease& held) {
  auto waiting = LeaseWait::start(*request(2), {.wait = std::nullopt});
  while (!waiting->look().value()) waiting->sleep();
  held.release();
  while (waiting->lease() == nullptr) {
    waiting->sleep();
    REQUIRE(waiting->look().has_value());
  }
  return waiting;
}

TEST_CASE("the process that keeps receipts gives back the watches of those that have waited") {
  const SimulatedMachine machine;
  auto held = lease(*request(2));
  if (!held) FAIL(held.error().message);
  for (int round = 0; round < 3; ++round) {
    auto waiting = waited_for(*held);
    held = std::move(*waiting->lease());
  }
  const int keeper = receipt_keeper(machine);
  while (SimulatedMachine::watches_of(keeper) != 0) ::usleep(10'000);
  held->release();
  CHECK(held->receipt().has_value());
}

TEST_CASE("a process that is killed takes the receipts of its leases with it, and no others") {
  const SimulatedMachine machine;
  auto first = lease(*request(1));
  if (!first) FAIL(first.error().message);
  ::kill(receipt_keeper(machine), SIGKILL);
  first->release();
  CHECK(first->receipt() == std::nullopt);
  auto second = lease(*request(2));
  if (!second) FAIL(second.error().message);
  second->release();
  CHECK(second->receipt().has_value());
}

TEST_CASE("a lease that comes when the process is about to end has its receipt") {
  const SimulatedMachine machine;
  auto first = lease(*request(1));
  if (!first) FAIL(first.error().message);
  const pid_t keeper = receipt_keeper(machine);
  first->release();
  REQUIRE(first->receipt().has_value());
  ::kill(keeper, SIGSTOP);
  auto second = lease(*request(1));
  // Longer than it stays without a lease.
  ::usleep(2'500'000);
  ::kill(keeper, SIGCONT);
  if (!second) FAIL(second.error().message);
  second->release();
  CHECK(second->receipt().has_value());
}

/// The name of the socket at which it listens, as the kernel shows it: without the byte before it.
/// By the socket, because one of an earlier machine, whose directory had the same inode, may not
/// have ended yet.
std::string name_of_receipt_keeper(int keeper) {
  const std::string link = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/0", keeper));
  // "socket:[12345]"; a line has the number before its name.
  const std::string before_name = fmt::format(" {} @", link.substr(8, link.size() - 9));
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (const auto at = line.find(before_name); at != std::string::npos)
      return line.substr(at + before_name.size());
  }
  return {};
}

/// Ends the process that keeps receipts, and takes its name.
sys::Descriptor in_place_of_receipt_keeper(const SimulatedMachine& machine) {
  const int keeper = receipt_keeper(machine);
  const std::string name = name_of_receipt_keeper(keeper);
  REQUIRE_FALSE(name.empty());
  ::kill(keeper, SIGKILL);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  sys::Descriptor taken(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  while (::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) ::usleep(10'000);
  return taken;
}

TEST_CASE("if another process has taken the name of the one that keeps receipts, leases have theirs") {
  const SimulatedMachine machine;
  const auto first = lease(*request(1));
  if (!first) FAIL(first.error().message);
  const sys::Descriptor taken = in_place_of_receipt_keeper(machine);
  auto second = lease(*request(1));
  if (!second) FAIL(second.error().message);
  second->release();
  CHECK(second->receipt().has_value());
}

// The kernel takes milliseconds to end a watch, and the host waits for the end of its helper.
TEST_CASE("a helper that has waited leaves its watch to the process that keeps the receipt") {
  const SimulatedMachine machine;
  auto held = lease(*request(2));
  if (!held) FAIL(held.error().message);
  const sys::Descriptor keeper = in_place_of_receipt_keeper(machine);
  REQUIRE(::listen(keeper.get(), 8) == 0);
  const auto waiting = waited_for(*held);
  // It came before it waited, and came again with the lease.
  sys::Received handed;
  std::vector<sys::Descriptor> connections;
  ::fcntl(keeper.get(), F_SETFL, O_NONBLOCK);
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (; handed.descriptors.empty() && std::chrono::steady_clock::now() < until; ::usleep(10'000)) {
    sys::Descriptor connection(::accept4(keeper.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) connections.push_back(std::move(connection));
    for (const sys::Descriptor& each : connections)
      if (handed.descriptors.empty()) handed = sys::receive_message(each.get()).value();
  }
  REQUIRE(handed.descriptors.size() == 2);
  const std::string path = fmt::format("/proc/self/fd/{}", handed.descriptors.back().get());
  CHECK(std::filesystem::read_symlink(path) == "anon_inode:inotify");
}

TEST_CASE("a missing program is an error that says which") {
  const SimulatedMachine machine;
  ::setenv("BERTH_PROGRAM", "/no/such/berth", 1);
  const auto seen = snapshot();
  ::unsetenv("BERTH_PROGRAM");
  REQUIRE_FALSE(seen.has_value());
  CHECK(seen.error().message.find("/no/such/berth") != std::string::npos);
}

}  // namespace
}  // namespace berth::berth_test
