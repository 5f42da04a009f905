#include "berth/sys/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/sys/process.h"

namespace berth::sys {
namespace {

using namespace std::chrono_literals;

constexpr auto kSlow = 1s;
constexpr auto kLookUp = 100ms;
// For each page of them the kernel walks all those before it, and keeps every other locker out
// meanwhile: so many cost it some 50 ms, ten times as many 5 s. They are the locks of all users on
// all files.
constexpr std::size_t kMostOfLocks = 1 << 20;
// While others lock and unlock all the time, each page may have to wait for them.
constexpr auto kLongestLookAtLocks = 1s;

struct flock byte_lock(short type, off_t first, off_t count) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  return lock;
}

// The next word of a line whose words are apart by one or more spaces.
std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size());
  return word;
}

template <class Number>
bool take_number(std::string_view& text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{};
}

// "08:01:1234": major and minor in hexadecimal, the inode in decimal.
std::optional<FileIdentity> parse_file(std::string_view text) {
  unsigned major_number = 0;
  unsigned minor_number = 0;
  ino_t inode = 0;
  if (!take_number(text, 16, major_number) || !text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  if (!take_number(text, 16, minor_number) || !text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  if (!take_number(text, 10, inode)) return std::nullopt;
  return FileIdentity{makedev(major_number, minor_number), inode};
}

Result<std::optional<ByteRange>> lock_in_the_way(int file, struct flock wanted) {
  if (::fcntl(file, F_OFD_GETLK, &wanted) != 0) return fail_errno("asking for a lock");
  if (wanted.l_type == F_UNLCK) return std::nullopt;
  const bool to_the_end = wanted.l_len == 0;
  return ByteRange{wanted.l_start,
                   to_the_end ? std::numeric_limits<off_t>::max() : wanted.l_start + wanted.l_len};
}

/// A lock, as /proc/locks has it: "1: FLOCK  ADVISORY  WRITE 708 08:01:1234 0 EOF".
struct LockLine {
  std::string_view text;  ///< without its number, which changes
  std::string_view kind;
  bool waits = false;  ///< not held: its taker waits for it
  bool writes = false;
  std::string_view taker;
  FileIdentity file;
};

template <class OnLine>
void for_each_line(std::string_view proc_locks, const OnLine& on_line) {
  while (!proc_locks.empty()) {
    std::string_view line = proc_locks.substr(0, proc_locks.find('\n'));
    proc_locks.remove_prefix(std::min(line.size() + 1, proc_locks.size()));
    next_word(line);
    LockLine lock;
    lock.text = line;
    lock.kind = next_word(line);
    lock.waits = lock.kind == "->";
    if (lock.waits) lock.kind = next_word(line);
    next_word(line);
    lock.writes = next_word(line) == "WRITE";
    lock.taker = next_word(line);
    const auto file = parse_file(next_word(line));
    if (!file) continue;
    lock.file = *file;
    on_line(lock);
  }
}

/// Of those that are held.
template <class OnLock>
void for_each_lock(std::string_view proc_locks, const OnLock& on_lock) {
  for_each_line(proc_locks, [&](const LockLine& lock) {
    if (!lock.waits) on_lock(lock);
  });
}

LocksReading read_locks_once(std::chrono::steady_clock::time_point until) {
  LocksReading read;
  const Descriptor file(::open("/proc/locks", O_RDONLY | O_CLOEXEC));
  std::array<char, 1 << 16> buffer;
  while (file && !read.slow && read.text.size() < kMostOfLocks) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    read.whole = got == 0;
    if (got <= 0) break;
    read.text.append(buffer.data(), static_cast<std::size_t>(got));
    read.slow = std::chrono::steady_clock::now() >= until;
  }
  // A line that is cut off in the middle would name another file.
  read.text.erase(read.text.rfind('\n') + 1);
  return read;
}

std::string why_left_out(const LocksReading& read) {
  // Some sandboxes have an empty file there.
  if (read.whole || read.text.empty()) return "";
  if (read.slow)
    return fmt::format("the kernel took more than {} s to list them", kLongestLookAtLocks.count());
  return fmt::format("they are more than {} MiB, most of them of {}", kMostOfLocks >> 20U,
                     who_has_most(read.text));
}

LocksReading read_proc_locks() {
  const auto until = std::chrono::steady_clock::now() + kLongestLookAtLocks;
  return merged_locks([until] { return read_locks_once(until); });
}

}  // namespace

Result<bool> try_flock(int file, LockMode mode) {
  if (::flock(file, (mode == LockMode::exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return fail_errno("locking");
}

void unlock_flock(int file) {
  ::flock(file, LOCK_UN);
}

Result<bool> wait_flock(int file, std::optional<std::chrono::milliseconds> limit,
                        const std::function<void()>& on_slow) {
  BERTH_LET(const auto at_once, try_flock(file, LockMode::exclusive));
  if (at_once) return true;
  const auto began = std::chrono::steady_clock::now();
  bool told = !on_slow;
  std::optional<Tick> tick;
  if (limit || on_slow) tick.emplace(limit ? kLookUp : kSlow);
  while (::flock(file, LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno("locking");
    // As a host program may say it, the limit may be more than nanoseconds can count.
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
    if (limit && waited >= *limit) return false;
    if (!told && waited >= kSlow) {
      on_slow();
      told = true;
    }
  }
  return true;
}

Result<Descriptor> lock_for_change(const std::string& path) {
  constexpr std::chrono::seconds kLongest{10};
  const std::string beside = path + ".lock";
  Descriptor file(::open(beside.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return fail_errno("writing " + beside);
  BERTH_LET(const bool is_ours, wait_flock(file.get(), kLongest, {}));
  if (!is_ours)
    return fail(ErrorCode::not_now, "another process has been changing {} for {} s (it has locked {})", path,
                kLongest.count(), beside);
  remove_unfinished(path);
  return file;
}

Result<bool> try_lock_bytes(int file, off_t first, off_t count) {
  struct flock lock = byte_lock(F_WRLCK, first, count);
  if (::fcntl(file, F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EBADF) {
    lock.l_type = F_RDLCK;
    if (::fcntl(file, F_OFD_SETLK, &lock) == 0) return true;
  }
  if (errno == EAGAIN || errno == EACCES) return false;
  return fail_errno("locking");
}

Result<std::optional<pid_t>> share_bytes(int file, off_t first, off_t count) {
  struct flock lock = byte_lock(F_RDLCK, first, count);
  if (::fcntl(file, F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return fail_errno("locking");
    // A lock that belongs to a descriptor has -1 for its process.
    if (::fcntl(file, F_OFD_GETLK, &lock) != 0) return fail_errno("asking for a lock");
    return lock.l_type == F_UNLCK ? 0 : std::max<pid_t>(lock.l_pid, 0);
  }
  struct stat status{};
  if (::fstat(file, &status) != 0) return fail_errno("looking at a lock");
  const auto writer = parse_waiting_writer(read_proc_locks().text, status.st_ino);
  if (writer) unlock_bytes(file, first, count);
  return writer;
}

std::optional<pid_t> parse_waiting_writer(std::string_view proc_locks, ino_t inode) {
  std::optional<pid_t> writer;
  for_each_line(proc_locks, [&](const LockLine& lock) {
    std::string_view taker = lock.taker;
    pid_t pid = 0;
    if (!writer && lock.waits && lock.writes && lock.kind == "POSIX" && lock.file.inode == inode &&
        take_number(taker, 10, pid))
      writer = pid;
  });
  return writer;
}

Result<std::optional<ByteRange>> lock_in(int file, ByteRange range) {
  // Asked as a writer, which the kernel allows on any descriptor.
  return lock_in_the_way(file, byte_lock(F_WRLCK, range.first, range.end - range.first));
}

void unlock_bytes(int file, off_t first, off_t count) {
  struct flock lock = byte_lock(F_UNLCK, first, count);
  ::fcntl(file, F_OFD_SETLK, &lock);
}

Result<std::optional<ByteRange>> write_lock_on(int file, off_t byte) {
  // Asked as a reader: only a write lock stands in a reader's way.
  return lock_in_the_way(file, byte_lock(F_RDLCK, byte, 1));
}

Result<bool> is_byte_locked(int file, off_t byte) {
  BERTH_LET(const auto lock, write_lock_on(file, byte));
  return lock.has_value();
}

Result<std::optional<ByteRange>> write_lock_from(int file, off_t byte) {
  return lock_in_the_way(file, byte_lock(F_RDLCK, byte, kToTheEnd));
}

Result<bool> wait_byte_unlocked(int file, off_t byte) {
  struct flock lock = byte_lock(F_RDLCK, byte, 1);
  if (::fcntl(file, F_OFD_SETLKW, &lock) == 0) {
    unlock_bytes(file, byte, 1);
    return true;
  }
  if (errno == EINTR) return false;
  return fail_errno("waiting for a lock");
}

LocksReading merged_locks(const std::function<LocksReading()>& read) {
  // A piece is a page, and ends before a line that does not fit.
  constexpr std::size_t kSurelyOnePiece = 3900;
  constexpr int kMostReadings = 3;
  LocksReading merged = read();
  if (merged.text.size() <= kSurelyOnePiece || !merged.whole) return merged;
  std::unordered_set<std::string> others;
  std::map<FileIdentity, std::string> flocks;
  const auto has_news = [&](std::string_view text) {
    std::map<FileIdentity, std::string> seen;
    bool found = false;
    for_each_line(text, [&](const LockLine& lock) {
      // A taker that waits is told too, and is no reason to read on.
      if (lock.waits)
        others.emplace(lock.text);
      else if (lock.kind == "FLOCK")
        seen[lock.file] += fmt::format("0:{}\n", lock.text);
      else
        found |= others.emplace(lock.text).second;
    });
    // A lock can go from hand to hand between two readings, and two have it in neither.
    for (auto& [file, lines] : seen) {
      found |= !flocks.contains(file);
      flocks[file] = std::move(lines);
    }
    return found;
  };
  has_news(merged.text);
  for (int readings = 1; readings < kMostReadings && has_news(read().text); ++readings) continue;
  merged.text.clear();
  for (const std::string& lock : others) merged.text += fmt::format("0:{}\n", lock);
  for (const auto& [file, lines] : flocks) merged.text += lines;
  return merged;
}

std::vector<HeldFlock> parse_flocks(std::string_view proc_locks) {
  std::vector<HeldFlock> held;
  for_each_lock(proc_locks, [&](const LockLine& line) {
    HeldFlock lock{line.file, line.writes ? LockMode::exclusive : LockMode::shared, 0};
    std::string_view taker = line.taker;
    if (line.kind == "FLOCK" && take_number(taker, 10, lock.taker)) held.push_back(lock);
  });
  return held;
}

std::string who_has_most(std::string_view proc_locks) {
  std::map<std::pair<pid_t, std::uint64_t>, std::size_t> counts;
  for_each_lock(proc_locks, [&](const LockLine& line) {
    pid_t taker = 0;
    std::string_view text = line.taker;
    const bool is_named = take_number(text, 10, taker) && taker > 0;
    ++counts[is_named ? std::pair(taker, std::uint64_t{0}) : std::pair(pid_t{0}, line.file.inode)];
  });
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  if (most == counts.end()) return "nobody";
  const auto [taker, inode] = most->first;
  if (taker == 0) return fmt::format("whoever has open the file with inode {}", inode);
  const std::string name = process_name(taker);
  return name.empty() ? fmt::format("process {}", taker) : fmt::format("process {} ({})", taker, name);
}

std::unordered_set<std::uint64_t> parse_write_locks(std::string_view proc_locks) {
  std::unordered_set<std::uint64_t> inodes;
  for_each_lock(proc_locks, [&](const LockLine& line) {
    if (line.writes && (line.kind == "OFDLCK" || line.kind == "POSIX")) inodes.insert(line.file.inode);
  });
  return inodes;
}

std::optional<std::unordered_set<std::uint64_t>> inodes_with_write_locks() {
  // A lock of our own shows whether any are shown: some sandboxes have an empty file there.
  const Descriptor own = memory_file("berth");
  struct stat status{};
  if (!own || ::fstat(own.get(), &status) != 0 || !try_lock_bytes(own.get(), 0, 1).value_or(false))
    return std::nullopt;
  const LocksReading read = read_proc_locks();
  if (!read.whole) return std::nullopt;
  auto inodes = parse_write_locks(read.text);
  if (!inodes.contains(status.st_ino)) return std::nullopt;
  return inodes;
}

std::optional<dev_t> device_in_locks(int directory) {
  // Takes a lock of our own on a file without a name, because the kernel shows such a lock in the
  // descriptor's fdinfo.
  const auto own = make_unnamed(directory, 0600);
  if (!own || !try_flock(own->get(), LockMode::exclusive).value_or(false)) return std::nullopt;
  const auto text = read_whole(fmt::format("/proc/self/fdinfo/{}", own->get()));
  const auto locks = text ? parse_flocks(*text) : std::vector<HeldFlock>();
  return locks.empty() ? std::nullopt : std::optional(locks.front().file.device);
}

HeldFlocks held_flocks_on(int directory) {
  struct stat status{};
  if (::fstat(directory, &status) != 0) return {};
  // On btrfs, a file of another subvolume may have the same number as one of our files. Nothing
  // tells them apart.
  const dev_t device = device_in_locks(directory).value_or(status.st_dev);
  const LocksReading read = read_proc_locks();
  HeldFlocks held{parse_flocks(read.text), why_left_out(read)};
  std::erase_if(held.locks, [&](const HeldFlock& lock) { return lock.file.device != device; });
  return held;
}

namespace {

constexpr long kAgainUs = 2000;

// Of the one Tick that there is. Read by the handler.
std::atomic<bool> has_become_readable = false;

// Without SA_RESTART the call returns. All else is for a call that had not begun.
void interrupt(int, siginfo_t* signal, void*) {
  if (signal->si_code == POLL_IN) has_become_readable = true;
  if (!has_become_readable) return;
  itimerval again{};
  again.it_value.tv_usec = again.it_interval.tv_usec = kAgainUs;
  ::setitimer(ITIMER_REAL, &again, nullptr);  // on Linux a call of the kernel and nothing else
}

}  // namespace

Tick::Tick(std::chrono::milliseconds period) {
  struct sigaction action{};
  action.sa_sigaction = interrupt;
  action.sa_flags = SA_SIGINFO;
  has_become_readable = false;
  ::sigaction(SIGALRM, &action, &before_);
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, &mask_before_);

  // The one timer that every process has. Another has to be made, which fails where the user's
  // limit of pending signals is reached, and a sleep without its timer would have no end.
  itimerval times{};
  times.it_interval.tv_sec = period.count() / 1000;
  times.it_interval.tv_usec = (period.count() % 1000) * 1000;
  times.it_value = times.it_interval;
  ::setitimer(ITIMER_REAL, &times, &timer_before_);
}

void Tick::also_by(int descriptor) {
  if (descriptor < 0) return;
  descriptors_.push_back(descriptor);
  ::fcntl(descriptor, F_SETOWN, ::getpid());
  ::fcntl(descriptor, F_SETSIG, SIGALRM);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_ASYNC);
}

Tick::~Tick() {
  for (const int descriptor : descriptors_)
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_ASYNC);
  has_become_readable = false;
  ::setitimer(ITIMER_REAL, &timer_before_, nullptr);
  // A tick that is still pending must not meet the action of before, which may be to end the
  // process.
  timespec at_once{};
  sigset_t alarm;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_BLOCK, &alarm, nullptr);
  ::sigtimedwait(&alarm, nullptr, &at_once);
  ::sigaction(SIGALRM, &before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace berth::sys
