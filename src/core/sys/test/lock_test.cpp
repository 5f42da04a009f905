#include "berth/sys/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "berth/sys/process.h"

namespace berth::sys::lock_test {
namespace {

// The bound is a guard against hanging.
template <class Condition>
void eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    ::usleep(1000);
  }
}

TEST_CASE("flocks are read from /proc/locks, those who wait for one are not") {
  const auto held = parse_flocks(
      "1: OFDLCK ADVISORY  WRITE -1 08:01:77 0 1\n"
      "2: FLOCK  ADVISORY  WRITE 708 08:01:1234 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 709 08:01:1234 0 EOF\n"
      "12: FLOCK  ADVISORY  READ  42 fd:1f:9 0 EOF\n"
      "3: POSIX  ADVISORY  WRITE 1 00:1a:5 0 EOF\n"
      "garbage\n");
  REQUIRE(held.size() == 2);
  CHECK(held[0].file == FileIdentity{makedev(8, 1), 1234});
  CHECK(held[0].mode == LockMode::exclusive);
  CHECK(held[0].taker == 708);
  CHECK(held[1].file == FileIdentity{makedev(0xfd, 0x1f), 9});
  CHECK(held[1].mode == LockMode::shared);
  CHECK(held[1].taker == 42);
}

TEST_CASE("which files have bytes locked to write is read from /proc/locks") {
  CHECK(parse_write_locks("1: OFDLCK ADVISORY  WRITE -1 00:2f:17 0 0\n"
                          "1: -> OFDLCK ADVISORY  READ -1 00:2f:18 1 1\n"
                          "2: OFDLCK ADVISORY  READ -1 00:2f:19 0 0\n"
                          "3: POSIX  ADVISORY  WRITE 44 08:01:20 0 EOF\n"
                          "4: FLOCK  ADVISORY  WRITE 45 08:01:21 0 EOF\n"
                          "5: OFDLCK ADVISORY  WRITE\n") == std::unordered_set<std::uint64_t>{17, 20});
}

TEST_CASE("a lock that one reading leaves out is found by the next") {
  const auto held = [](int inode) {
    return fmt::format("7: OFDLCK ADVISORY  WRITE -1 00:2f:{} 0 0\n", inode);
  };
  // Nearly a page, so that the next lock may have been in a second piece.
  std::string page;
  for (int inode = 1000; page.size() <= 3900; ++inode) page += held(inode);
  const auto read = [&](std::vector<std::string> readings) {
    std::size_t done = 0;
    const LocksReading merged = merged_locks([&] { return LocksReading{readings.at(done++), true}; });
    const auto inodes = parse_write_locks(merged.text);
    return std::tuple(inodes.contains(17), inodes.contains(18), done);
  };
  using Found = std::tuple<bool, bool, std::size_t>;
  CHECK(read({held(17)}) == Found{true, false, 1});
  CHECK(read({page, page + held(18), page + held(18)}) == Found{false, true, 3});
  CHECK(read({page + held(17), page + held(18), page}) == Found{true, true, 3});
  CHECK(read({page + held(17) + held(18), page + "9" + held(17)}) == Found{true, true, 2});
  int readings = 0;
  const auto cut_off = merged_locks([&] { return ++readings, LocksReading{page, false}; });
  CHECK_FALSE(cut_off.whole);
  CHECK(readings == 1);
}

TEST_CASE("of a long list, whoever waits for a lock is told, by whichever reading had it") {
  std::string page;
  for (int inode = 1000; inode < 1200; ++inode)
    page += fmt::format("1: POSIX  ADVISORY  WRITE 1 08:01:{} 0 EOF\n", inode);
  const std::string waiting = "2: -> POSIX  ADVISORY  WRITE 711 08:01:1234 0 EOF\n";
  for (const bool at_first : {true, false}) {
    int readings = 0;
    const LocksReading merged = merged_locks([&] {
      const bool is_seen = (++readings == 1) == at_first;
      return LocksReading{is_seen ? page + waiting : page, true};
    });
    CHECK(parse_waiting_writer(merged.text, 1234) == 711);
    CHECK(readings == 2);
  }
}

TEST_CASE("who has most of the locks is named, by the file where the kernel knows no process") {
  const std::string flock = "3: FLOCK  ADVISORY  WRITE 4194303 08:01:20 0 EOF\n";
  const std::string open_file = "4: OFDLCK ADVISORY  WRITE -1 08:01:21 0 0\n";
  CHECK(who_has_most(flock + flock + open_file) == "process 4194303");
  CHECK(who_has_most(flock + open_file + open_file) == "whoever has open the file with inode 21");
  CHECK(who_has_most("") == "nobody");
}

TEST_CASE("a flock that goes from hand to hand between two readings has one holder") {
  const auto held = [](int taker) {
    return fmt::format("3: FLOCK  ADVISORY  WRITE {} 08:01:20 0 EOF\n", taker);
  };
  const std::string shared = "4: FLOCK  ADVISORY  READ 50 08:01:21 0 EOF\n";
  std::string page;
  for (int inode = 1000; page.size() <= 3900; ++inode)
    page += fmt::format("1: OFDLCK ADVISORY  WRITE -1 00:2f:{} 0 0\n", inode);
  const std::vector<std::string> texts{page + held(44) + shared + shared, page + held(45)};
  std::size_t done = 0;
  const auto flocks = parse_flocks(
      merged_locks([&] { return LocksReading{texts.at(std::min<std::size_t>(done++, 1)), true}; }).text);
  REQUIRE(flocks.size() == 3);
  CHECK(flocks[0].taker == 45);
  // Two leases of one process.
  CHECK(flocks[1].taker == 50);
  CHECK(flocks[2].taker == 50);
}

TEST_CASE("a byte that this process has locked is among those that the kernel shows") {
  const Descriptor file(static_cast<int>(::syscall(SYS_memfd_create, "test", MFD_CLOEXEC)));
  struct stat status{};
  REQUIRE(::fstat(file.get(), &status) == 0);
  CHECK_FALSE(inodes_with_write_locks()->contains(status.st_ino));
  REQUIRE(try_lock_bytes(file.get(), 0, 2).value());
  CHECK(inodes_with_write_locks()->contains(status.st_ino));
}

TEST_CASE("a flock is found by the number that /proc/locks has for its file system, whatever stat() says") {
  const Descriptor folder(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto file = make_unnamed(folder.get(), 0600);
  REQUIRE(file.has_value());
  REQUIRE(try_flock(file->get(), LockMode::exclusive).value());
  struct stat status{};
  REQUIRE(::fstat(file->get(), &status) == 0);
  const HeldFlocks held = held_flocks_on(folder.get());
  CHECK(std::ranges::any_of(held.locks, [&](const HeldFlock& lock) {
    return lock.file.inode == status.st_ino && lock.taker == ::getpid() &&
           lock.file.device == device_in_locks(folder.get());
  }));
}

TEST_CASE("of very many locks no more than a part is read") {
  constexpr off_t kOfOneFile = 200;
  const Descriptor folder(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  CHECK(held_flocks_on(folder.get()).left_out.empty());
  std::vector<Descriptor> files;
  for (int file = 0; file < 200; ++file) {
    auto made = make_unnamed(folder.get(), 0600);
    REQUIRE(made.has_value());
    // Not side by side: those would be one lock.
    for (off_t byte = 0; byte < kOfOneFile; ++byte) REQUIRE(try_lock_bytes(made->get(), 2 * byte, 1).value());
    files.push_back(*std::move(made));
  }
  const std::string left_out = held_flocks_on(folder.get()).left_out;
  CAPTURE(left_out);
  // A kernel that has other work is too slow before there is as much.
  CHECK((left_out.starts_with("they are more than 1 MiB, most of them of ") ||
         left_out.starts_with("the kernel took more than ")));
  CHECK_FALSE(inodes_with_write_locks().has_value());
}

TEST_CASE("a lock is waited for as long as is said, be it longer than nanoseconds can count") {
  const Descriptor folder(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto made = make_unnamed(folder.get(), 0600);
  REQUIRE(made);
  const std::string path = "/proc/self/fd/" + std::to_string(made->get());
  const Descriptor other(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(try_flock(made->get(), LockMode::exclusive) == true);
  // Longer than until the first look at the clock.
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    unlock_flock(made->get());
  });
  CHECK(wait_flock(other.get(), std::chrono::milliseconds::max(), {}) == true);
  holder.join();
}

TEST_CASE("a process's state is read past a name that looks like the rest of the line") {
  const auto stat = parse_process_stat(
      "4711 (a) S 1 (b) T 17 4711 4711 34816 4711 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10 "
      "18446744073709551615\n");
  REQUIRE(stat.has_value());
  CHECK(stat->stopped());
  CHECK(stat->parent == 17);
  CHECK(stat->process == UniqueProcess{4711, 987654});
  CHECK_FALSE(stat->exiting);
  CHECK_FALSE(parse_process_stat("").has_value());
  CHECK_FALSE(parse_process_stat("4711 (sh) S 1").has_value());
}

TEST_CASE("a process is over when all its threads are, not when its first one is") {
  const auto stat_of = [](std::string_view state, int threads) {
    return parse_process_stat(
        fmt::format("4711 (a) {} 17 1 1 0 1 1 1 1 1 1 1 1 1 1 20 0 {} 0 987 1 1 1\n", state, threads));
  };
  CHECK(stat_of("Z", 1)->ended());
  CHECK(stat_of("X", 0)->ended());
  CHECK_FALSE(stat_of("Z", 2)->ended());
  CHECK_FALSE(stat_of("S", 1)->ended());
}

/// A process whose first thread has ended, while another one waits for ever.
class WithoutFirstThread {
 public:
  WithoutFirstThread() : pid_(::fork()) {
    if (pid_ == 0) {
      // Not that of the tests, which tells of a crash.
      ::signal(SIGTERM, SIG_DFL);
      std::thread([] {
        for (;;) ::pause();
      }).detach();
      ::syscall(SYS_exit, 0);
    }
    eventually([this] { return read_whole(fmt::format("/proc/{}/stat", pid_))->contains(") Z "); });
  }
  ~WithoutFirstThread() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  WithoutFirstThread(const WithoutFirstThread&) = delete;
  WithoutFirstThread& operator=(const WithoutFirstThread&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST_CASE(
    "a process without its first thread lives, is stopped when all its others are, and shows its files") {
  const Descriptor file(static_cast<int>(::syscall(SYS_memfd_create, "test", MFD_CLOEXEC)));
  struct stat status{};
  REQUIRE(::fstat(file.get(), &status) == 0);
  const WithoutFirstThread process;
  CHECK_FALSE(process_stat(process.pid())->ended());
  CHECK(pids_of(ProcessTree().below(::getpid())) == std::vector{process.pid()});
  CHECK(process_can_write(process.pid(), identity_of(status)) == true);
  CHECK_FALSE(process_command(process.pid()).empty());
  CHECK(process_variable(process.pid(), "PATH") == process_variable(::getpid(), "PATH"));

  CHECK_FALSE(process_stat(process.pid())->stopped());
  ::kill(process.pid(), SIGSTOP);
  eventually([&] { return process_stat(process.pid())->stopped(); });
  CHECK(ask_to_end(unique_process(process.pid())));
  eventually([&] { return process_stat(process.pid())->ended(); });
  CHECK(ProcessTree().below(::getpid()).empty());
}

TEST_CASE("a process that has the pid of an earlier one is not that one") {
  const UniqueProcess self = unique_process(::getpid());
  CHECK(process_stat(self)->process == self);
  CHECK(still_runs(self));
  const UniqueProcess earlier{self.pid, self.start_ticks - 1};
  CHECK_FALSE(process_stat(earlier).has_value());
  CHECK_FALSE(still_runs(earlier));
}

TEST_CASE("this process is known to itself") {
  const auto stat = process_stat(::getpid());
  REQUIRE(stat.has_value());
  CHECK(stat->parent == ::getppid());
  CHECK_FALSE(stat->stopped());
  CHECK(process_owner(::getpid()) == ::geteuid());
  CHECK(process_variable(::getpid(), "NO_SUCH_VARIABLE") == "");
}

TEST_CASE("who has a file open to read is not taken for one who has it open to write") {
  const Descriptor folder(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto writer = make_unnamed(folder.get(), 0644);
  REQUIRE(writer);
  struct stat status{};
  REQUIRE(::fstat(writer->get(), &status) == 0);
  const Descriptor reader(
      ::open(("/proc/self/fd/" + std::to_string(writer->get())).c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(reader);
  CHECK(process_can_write(::getpid(), identity_of(status)) == true);
  writer->close();
  CHECK(process_can_write(::getpid(), identity_of(status)) == false);
}

TEST_CASE("of the locks that wait, those for writing the file are found") {
  constexpr std::string_view kLocks =
      "1: OFDLCK ADVISORY  READ -1 08:01:1234 0 EOF\n"
      "1: -> FLOCK  ADVISORY  WRITE 708 08:01:1234 0 EOF\n"
      "1:  -> POSIX  ADVISORY  READ 709 08:01:1234 0 EOF\n"
      "1:  -> POSIX  ADVISORY  WRITE 710 08:01:1235 0 EOF\n"
      "1:   -> POSIX  ADVISORY  WRITE 711 08:01:1234 0 EOF\n"
      "2: POSIX  ADVISORY  WRITE 712 08:01:1236 0 EOF\n";
  CHECK(parse_waiting_writer(kLocks, 1234) == 711);
  CHECK(parse_waiting_writer(kLocks, 1236) == std::nullopt);
  CHECK(parse_waiting_writer("", 1234) == std::nullopt);
}

}  // namespace
}  // namespace berth::sys::lock_test
