#include "machine/world.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "machine/allocations.h"
#include "machine/parse.h"

namespace berth::sim {
namespace {

// The kernel stamps files with a clock that ticks every few milliseconds: a second change within
// one tick leaves no trace, so a file read so soon after its last change is read again at the next
// call.
constexpr std::int64_t kStampTickNs = 20'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         nanoseconds(a.st_mtim) == nanoseconds(b.st_mtim) && nanoseconds(a.st_ctim) == nanoseconds(b.st_ctim);
}

void sleep_us(std::uint64_t us) {
  timespec left{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// A thread inside a sick driver answers to no signal but SIGKILL.
[[noreturn]] void hang() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  for (;;) pause();
}

[[noreturn]] void crash() {
  signal(SIGSEGV, SIG_DFL);
  for (;;) raise(SIGSEGV);
}

// A file that all users append to. Made without O_CREAT on an existing one, which a sticky
// directory forbids.
int open_shared(const std::string& state_directory, const char* name) {
  const std::string path = state_directory + name;
  int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0) return fd;
  make_state_directory(state_directory);
  fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  fchmod(fd, 0666);
  return fd;
}

// One byte a call in a file: the position after an appending write is the number of the call among
// all processes.
std::uint64_t count_shared(const std::string& state_directory, std::uint64_t identity) {
  char name[40];
  std::snprintf(name, sizeof name, "/counts/%016llx", static_cast<unsigned long long>(identity));
  const int fd = open_shared(state_directory, name);
  if (fd < 0) return 1;
  const ssize_t written = write(fd, ".", 1);
  const off_t position = lseek(fd, 0, SEEK_CUR);
  close(fd);
  return written == 1 && position > 0 ? static_cast<std::uint64_t>(position) : 1;
}

std::string read_whole(int fd, off_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(fd, text.data() + have, text.size() - have);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace

World::World() {
  const char* named = getenv("BERTH_SIM");
  if (named != nullptr) file_ = named;
}

World::World(std::string file) : file_(std::move(file)) {}

bool World::fail(const std::string& what) {
  error_ = what;
  if (told_ == what) return false;
  told_ = what;
  const std::string line = "berth-sim: " + what + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
  return false;
}

bool World::refresh() {
  if (file_.empty()) return fail("BERTH_SIM is not set: start the program with berth-sim FILE -- COMMAND");
  struct stat now{};
  if (stat(file_.c_str(), &now) != 0) {
    loaded_ = false;
    return fail(file_ + ": " + strerror(errno));
  }
  if (loaded_ && !may_have_changed_unseen_ && same_file(now, seen_)) return error_.empty();
  return load_file(now);
}

bool World::load_file(const struct stat& now) {
  timespec clock{};
  clock_gettime(CLOCK_REALTIME, &clock);
  const int fd = open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    loaded_ = false;
    return fail(file_ + ": " + strerror(errno));
  }
  const std::string text =
      S_ISREG(now.st_mode) && now.st_size < 16 * 1024 * 1024 ? read_whole(fd, now.st_size) : "";
  close(fd);
  Scenario fresh;
  const std::string wrong = parse_scenario(text, file_, fresh);
  seen_ = now;
  loaded_ = true;
  may_have_changed_unseen_ = nanoseconds(clock) - nanoseconds(now.st_mtim) < kStampTickNs;
  if (!wrong.empty()) return fail(wrong);
  error_.clear();
  scenario_ = std::move(fresh);
  place_ = {file_ + ".d", nanoseconds(now.st_mtim)};
  return true;
}

std::uint64_t World::count_call(const Fault& fault) {
  if (fault.shared) return count_shared(place_.state_directory, fault.identity);
  for (Counter& counter : counters_)
    if (counter.identity == fault.identity) return ++counter.calls;
  counters_.push_back({fault.identity, 1});
  return 1;
}

Verdict World::judge(const char* call, int device) {
  Verdict verdict;
  for (const Fault& fault : scenario_.faults) {
    if (fault.device && static_cast<int>(*fault.device) != device) continue;
    if (fnmatch(fault.call.c_str(), call, 0) != 0) continue;
    const std::uint64_t number = count_call(fault);
    if (number < fault.from_call || number - fault.from_call >= fault.times) continue;
    if (fault.delay_us != 0) sleep_us(fault.delay_us);
    if (fault.hang) hang();
    if (fault.crash) crash();
    verdict.stale_count |= fault.stale_count;
    verdict.extra_rows += static_cast<unsigned>(fault.grow * (number - fault.from_call + 1));
    if (fault.result && verdict.result == 0) verdict.result = *fault.result;
  }
  return verdict;
}

// Opened for each line: a descriptor that stayed open could be closed by the program, given another
// meaning, and written into.
void World::log(const char* call, int device, int slot, int result) {
  if (!scenario_.call_log) return;
  const int fd = open_shared(place_.state_directory, "/calls.log");
  if (fd < 0) return;
  char where[24] = "-";
  if (device >= 0 && slot >= 0)
    std::snprintf(where, sizeof where, "%d:%d", device, slot);
  else if (device >= 0)
    std::snprintf(where, sizeof where, "%d", device);
  char line[160];
  const int length = std::snprintf(line, sizeof line, "%d %s %s %d\n", getpid(), call, where, result);
  if (length > 0) (void)!write(fd, line, static_cast<std::size_t>(length));
  close(fd);
}

}  // namespace berth::sim
