#include "machine/allocations.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "machine/process_life.h"

namespace berth::sim {
namespace {

constexpr std::string_view kEnded = ".ended";

std::string alloc_directory(const std::string& state_directory) {
  return state_directory + "/alloc";
}

std::int64_t age_us(const struct stat& file) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return (now.tv_sec - file.st_mtim.tv_sec) * 1'000'000LL + (now.tv_nsec - file.st_mtim.tv_nsec) / 1000;
}

// Whoever comes first writes the time down; a file's own time is a clock that all users share.
bool within_delay_of_mark(const std::string& mark, std::uint64_t delay_us) {
  const int fd = ::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd >= 0) {
    close(fd);
    return true;
  }
  struct stat file{};
  return stat(mark.c_str(), &file) == 0 && age_us(file) < static_cast<std::int64_t>(delay_us);
}

// A client asks for every device's memory and processes; where nobody uses the simulated libcuda,
// one look at the directory's time replaces reading it. A time that is younger than the tick of
// file times proves nothing.
constexpr std::int64_t kStampTickUs = 20'000;
constexpr struct stat kNever{};
constinit struct stat found_empty{};

bool still_empty(const struct stat& now) {
  return now.st_ino == found_empty.st_ino && now.st_dev == found_empty.st_dev &&
         now.st_mtim.tv_sec == found_empty.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == found_empty.st_mtim.tv_nsec;
}

bool lock_is_held(int fd) {
  struct flock query{};
  query.l_type = F_WRLCK;
  query.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_GETLK, &query) == 0 && query.l_type != F_UNLCK;
}

// The first and the last line carry the same number unless the text was read while it was being
// replaced.
bool parse_record(const std::string& text, std::vector<Holding>& holdings) {
  unsigned first = 0, last = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "berth-sim %u\n%n", &first, &used) != 1) return false;
  const char* line = text.c_str() + used;
  holdings.clear();
  for (;;) {
    if (std::sscanf(line, "end %u", &last) == 1) return first == last;
    char uuid[100];
    Holding holding;
    if (std::sscanf(line, "%99s %d %" SCNu64 "\n%n", uuid, &holding.slot, &holding.bytes, &used) != 3)
      return false;
    holding.uuid = uuid;
    holdings.push_back(std::move(holding));
    line += used;
  }
}

std::vector<Holding> read_holdings(int fd) {
  std::vector<Holding> holdings;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    char block[8192];
    const ssize_t got = pread(fd, block, sizeof block - 1, 0);
    if (got <= 0) break;
    if (parse_record(std::string(block, static_cast<std::size_t>(got)), holdings)) return holdings;
  }
  return {};
}

class Directory {
 public:
  explicit Directory(const std::string& path) : dir_(opendir(path.c_str())) {}
  ~Directory() {
    if (dir_ != nullptr) closedir(dir_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const char* next() {
    const dirent* entry = dir_ != nullptr ? readdir(dir_) : nullptr;
    return entry != nullptr ? entry->d_name : nullptr;
  }

 private:
  DIR* dir_;
};

bool owner_lives(int fd, std::int64_t pid, std::uint64_t start) {
  return lock_is_held(fd) && start_time(pid) == start;
}

// Only its owner (or root) can remove a file from a sticky directory; everybody else ignores dead
// ones.
void sweep(const std::string& path) {
  unlink(path.c_str());
  unlink((path + std::string(kEnded)).c_str());
}

bool read_record(const std::string& path, std::int64_t pid, std::uint64_t start, std::uint64_t delay_us,
                 Record& record) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  record.pid = pid;
  record.draining = !owner_lives(fd, pid, start);
  const bool counts =
      !record.draining || (delay_us != 0 && within_delay_of_mark(path + std::string(kEnded), delay_us));
  if (counts) record.holdings = read_holdings(fd);
  close(fd);
  // A record whose process lives but holds no lock is being made at this moment, or was left by an
  // exec.
  if (!counts && start_time(pid) != start) sweep(path);
  return counts;
}

}  // namespace

std::vector<Record> read_records(const std::string& state_directory, std::uint64_t return_delay_us) {
  std::vector<Record> records;
  const std::string directory = alloc_directory(state_directory);
  struct stat before{};
  if (stat(directory.c_str(), &before) != 0 || still_empty(before)) return records;
  bool empty = true;
  Directory entries(directory);
  while (const char* name = entries.next()) {
    char* rest = nullptr;
    const auto pid = std::strtoll(name, &rest, 10);
    if (pid <= 0 || *rest != '-') continue;
    const auto start = std::strtoull(rest + 1, &rest, 10);
    if (*rest != '\0') continue;
    empty = false;
    Record record;
    if (read_record(directory + "/" + name, pid, start, return_delay_us, record))
      records.push_back(std::move(record));
  }
  found_empty = empty && age_us(before) > kStampTickUs ? before : kNever;
  return records;
}

bool still_draining(const std::string& state_directory, const std::string& key,
                    std::uint64_t return_delay_us) {
  if (return_delay_us == 0) return false;
  return within_delay_of_mark(alloc_directory(state_directory) + "/" + key + std::string(kEnded),
                              return_delay_us);
}

void forget_end(const std::string& state_directory, const std::string& key) {
  unlink((alloc_directory(state_directory) + "/" + key + std::string(kEnded)).c_str());
}

bool make_state_directory(const std::string& state_directory) {
  for (const std::string& path : {state_directory, alloc_directory(state_directory),
                                  state_directory + "/leases", state_directory + "/counts"}) {
    // Several users share one machine: mkdir's mode is cut by the umask, so it is set again.
    if (mkdir(path.c_str(), 01777) == 0 && chmod(path.c_str(), 01777) != 0) return false;
    struct stat made{};
    if (lstat(path.c_str(), &made) != 0 || !S_ISDIR(made.st_mode)) return false;
  }
  return true;
}

bool OwnRecord::still_ours() const {
  struct stat now{};
  return fd_ >= 0 && fstat(fd_, &now) == 0 && now.st_ino == inode_ && now.st_dev == device_;
}

bool OwnRecord::open(const std::string& state_directory) {
  if (still_ours()) return true;
  const std::string path = alloc_directory(state_directory) + "/" + std::to_string(getpid()) + "-" +
                           std::to_string(start_time(getpid()));
  unlink(path.c_str());  // of this very process before an exec
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return false;
  fchmod(fd, 0644);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    close(fd);
    unlink(path.c_str());
    return false;
  }
  struct stat made{};
  fstat(fd, &made);
  inode_ = made.st_ino;
  device_ = made.st_dev;
  fd_ = fd;
  path_ = path;
  sequence_ = 0;
  length_ = 0;
  return true;
}

bool OwnRecord::write(const std::vector<Holding>& holdings) {
  ++sequence_;
  std::string text = "berth-sim " + std::to_string(sequence_) + "\n";
  for (const Holding& holding : holdings) {
    char line[160];
    std::snprintf(line, sizeof line, "%s %d %" PRIu64 "\n", holding.uuid.c_str(), holding.slot,
                  holding.bytes);
    text += line;
  }
  text += "end " + std::to_string(sequence_) + "\n";
  const std::size_t length = text.size();
  if (length < length_) text.append(length_ - length, '\n');  // one write also wipes what was longer
  length_ = text.size();
  return pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

void OwnRecord::remove() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  if (still_ours()) close(fd_);
  fd_ = -1;
}

AllocationGate::AllocationGate(const std::string& state_directory) {
  if (!make_state_directory(state_directory)) return;
  const std::string path = alloc_directory(state_directory) + "/.gate";
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) {
    fd = ::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);  // another user was faster
  }
  if (fd < 0) return;
  while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
  }
  fd_ = fd;
}

AllocationGate::~AllocationGate() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace berth::sim
