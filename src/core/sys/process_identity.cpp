#include "berth/sys/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>

#include <fmt/format.h>

#include "berth/base/record.h"

namespace berth::sys {
namespace {

constexpr int kParentField = 4;
constexpr int kFlagsField = 9;
constexpr int kThreadsField = 20;
constexpr int kStartField = 22;
constexpr std::uint64_t kExiting = 0x4;  // PF_EXITING of the kernel

std::string proc_path(pid_t pid, std::string_view what) {
  return fmt::format("/proc/{}/{}", pid, what);
}

// A process says itself where its arguments and its environment lie (PR_SET_MM_MAP): it may name
// all of its memory, and more of it than there is in the machine. No program is started with a
// longer environment than this (three quarters of _STK_LIM). Of the arguments, nobody wants to know
// so much.
constexpr std::size_t kMostOfEnvironment = 6 << 20;
constexpr std::size_t kMostOfCommand = 64 << 10;

std::optional<pid_t> pid_from_name(const std::string& name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

// Of /proc/PID/fdinfo/N: "lock: 1: OFDLCK ADVISORY  WRITE -1 fe:00:9978819 7 7", with EOF for no end.
bool tells_lock(std::string_view info, off_t byte) {
  for (const auto line : std::views::split(info, '\n')) {
    const std::string_view text(line.begin(), line.end());
    const std::size_t last = text.rfind(' ');
    const std::size_t first = last == std::string_view::npos ? last : text.rfind(' ', last - 1);
    if (first == std::string_view::npos || text.find(" OFDLCK ") == std::string_view::npos) continue;
    const auto start = number_from_text<off_t>(text.substr(first + 1, last - first - 1));
    const auto end = number_from_text<off_t>(text.substr(last + 1));
    if (start && *start <= byte && (!end || byte <= *end)) return true;
  }
  return false;
}

std::optional<ProcessStat> stat_in(const std::string& path) {
  // The kernel gives the line whole in one reading; fields up to the last that is wanted fit amply.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> line;
  const ssize_t got = file ? ::read(file.get(), line.data(), line.size()) : -1;
  if (got < 0) return std::nullopt;
  return parse_process_stat({line.data(), static_cast<std::size_t>(got)});
}

/// A thread of a process, and its state.
struct Thread {
  std::string id;
  char state = '?';
};

// The threads that have not ended.
std::vector<Thread> living_threads(pid_t pid) {
  const Descriptor folder(::open(proc_path(pid, "task").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto entries = list_directory(folder.get());
  std::vector<Thread> living;
  for (const DirectoryEntry& entry : entries ? *entries : std::vector<DirectoryEntry>()) {
    const auto stat = stat_in(proc_path(pid, fmt::format("task/{}/stat", entry.name)));
    if (stat && !stat->first_thread_ended()) living.push_back({entry.name, stat->state});
  }
  return living;
}

// Where /proc shows what all threads of a process share. Once the first thread has ended, the files
// of the process itself show nothing, or are root's.
std::string path_of_shared(pid_t pid, std::string_view what) {
  const auto stat = stat_in(proc_path(pid, "stat"));
  if (!stat || !stat->first_thread_ended()) return proc_path(pid, what);
  const std::vector<Thread> living = living_threads(pid);
  if (living.empty()) return proc_path(pid, what);
  return proc_path(pid, fmt::format("task/{}/{}", living.front().id, what));
}

/// The open files of a process.
struct OpenFiles {
  Descriptor folder;
  std::vector<DirectoryEntry> entries;
};

// nullopt: we may not know.
std::optional<OpenFiles> open_files(pid_t pid) {
  OpenFiles files{Descriptor(::open(path_of_shared(pid, "fd").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                  {}};
  if (!files.folder) return std::nullopt;
  auto entries = list_directory(files.folder.get());
  if (!entries) return std::nullopt;
  files.entries = *std::move(entries);
  return files;
}

// A descriptor may be open in a file system that never answers, as one that a user has made. So it
// is asked for what is known already.
std::optional<FileIdentity> identity_of(const OpenFiles& files, const DirectoryEntry& entry) {
  struct statx status{};
  if (::statx(files.folder.get(), entry.name.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &status) != 0)
    return std::nullopt;
  return FileIdentity{makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
}

// Which of the files the process has open for writing. nullopt: we may not know.
std::optional<std::set<FileIdentity>> written_of(pid_t pid, const std::set<FileIdentity>& wanted) {
  const auto files = open_files(pid);
  if (!files) return std::nullopt;
  std::set<FileIdentity> written;
  for (const DirectoryEntry& entry : files->entries) {
    const auto file = identity_of(*files, entry);
    if (!file) continue;
    // The link's own mode says what the descriptor is open for.
    struct stat link{};
    if (wanted.contains(*file) &&
        ::fstatat(files->folder.get(), entry.name.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0 &&
        (link.st_mode & S_IWUSR) != 0)
      written.insert(*file);
  }
  return written;
}

/// The uids of a process: the real, the effective, the saved one, and that for files.
constexpr std::size_t kUids = 4;
std::optional<std::array<uid_t, kUids>> uids_of(pid_t pid) {
  // Not the owner of /proc/PID, which is root for every process that may not be dumped.
  const auto text = read_whole(proc_path(pid, "status"));
  constexpr std::string_view kLine = "\nUid:";
  std::size_t at = text ? text->find(kLine) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  at += kLine.size();
  std::array<uid_t, kUids> uids{};
  for (uid_t& uid : uids) {  // a tab before each
    const char* const end = text->data() + text->size();
    const auto read = std::from_chars(text->data() + std::min(at + 1, text->size()), end, uid);
    if (read.ec != std::errc{}) return std::nullopt;
    at = static_cast<std::size_t>(read.ptr - text->data());
  }
  return uids;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // The name in field 2 may itself hold spaces and parentheses: what follows begins after the last
  // one.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  std::string_view rest = text.substr(name_end + 2);
  ProcessStat stat;
  std::from_chars(text.data(), text.data() + name_end, stat.process.pid);
  stat.state = rest.front();
  for (int field = 3; field <= kStartField && !rest.empty(); ++field) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (field == kParentField) std::from_chars(word.data(), word.data() + word.size(), stat.parent);
    if (field == kFlagsField)
      stat.exiting = (number_from_text<std::uint64_t>(word).value_or(0) & kExiting) != 0;
    if (field == kThreadsField) std::from_chars(word.data(), word.data() + word.size(), stat.threads);
    if (field == kStartField) {
      std::from_chars(word.data(), word.data() + word.size(), stat.process.start_ticks);
      return stat;
    }
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return std::nullopt;
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  auto stat = stat_in(proc_path(pid, "stat"));
  if (!stat || !stat->first_thread_ended() || stat->ended()) return stat;
  const std::vector<Thread> living = living_threads(pid);
  const auto runs = std::ranges::find_if(living, [](const Thread& each) { return each.state != 'T'; });
  if (!living.empty()) stat->state = runs != living.end() ? runs->state : 'T';
  return stat;
}

std::optional<ProcessStat> process_stat(const UniqueProcess& process) {
  auto stat = process_stat(static_cast<pid_t>(process.pid));
  if (stat && stat->process != process) stat.reset();
  return stat;
}

bool still_runs(const UniqueProcess& process) {
  const auto stat = process_stat(process);
  return stat && !stat->ended();
}

UniqueProcess unique_process(pid_t pid) {
  const auto stat = process_stat(pid);
  return stat ? stat->process : UniqueProcess{static_cast<std::uint32_t>(pid), 0};
}

std::vector<pid_t> pids_of(const std::vector<UniqueProcess>& processes) {
  std::vector<pid_t> pids;
  for (const UniqueProcess& process : processes) pids.push_back(static_cast<pid_t>(process.pid));
  return pids;
}

std::set<UniqueProcess> unique_processes(const std::vector<pid_t>& pids) {
  std::set<UniqueProcess> unique;
  for (const pid_t pid : pids) {
    if (const auto stat = process_stat(pid)) unique.insert(stat->process);
  }
  return unique;
}

std::optional<uid_t> process_owner(pid_t pid) {
  const auto uids = uids_of(pid);
  return uids ? std::optional((*uids)[1]) : std::nullopt;
}

bool may_be_signalled_by(uid_t user, pid_t pid) {
  const auto uids = uids_of(pid);
  return user == 0 || (uids && ((*uids)[0] == user || (*uids)[2] == user));
}

std::optional<bool> process_can_write(pid_t pid, const FileIdentity& file) {
  const auto files = written_of(pid, {file});
  return files ? std::optional(!files->empty()) : std::nullopt;
}

std::vector<pid_t> processes_here() {
  const Descriptor proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto entries = list_directory(proc.get());
  std::vector<pid_t> pids;
  for (const DirectoryEntry& entry : entries ? *entries : std::vector<DirectoryEntry>()) {
    if (const auto pid = pid_from_name(entry.name)) pids.push_back(*pid);
  }
  return pids;
}

std::map<FileIdentity, std::vector<pid_t>> writers_of(const std::set<FileIdentity>& files) {
  std::map<FileIdentity, std::vector<pid_t>> found;
  if (files.empty()) return found;
  for (const pid_t pid : processes_here()) {
    if (pid == ::getpid()) continue;
    for (const FileIdentity& file : written_of(pid, files).value_or(std::set<FileIdentity>{}))
      found[file].push_back(pid);
  }
  return found;
}

std::vector<pid_t> processes_that_can_write(const FileIdentity& file) {
  return writers_of({file})[file];
}

namespace {

// Whether a descriptor of this file tells (/proc/PID/fdinfo) what is asked for. nullopt: we may not
// know.
template <class Tells>
std::optional<bool> a_descriptor_tells(pid_t pid, const FileIdentity& file, const Tells& tells) {
  const auto files = open_files(pid);
  if (!files) return std::nullopt;
  return std::ranges::any_of(files->entries, [&](const DirectoryEntry& entry) {
    if (identity_of(*files, entry) != file) return false;
    const auto info = read_whole(path_of_shared(pid, "fdinfo/" + entry.name));
    return info && tells(*info);
  });
}

}  // namespace

bool shares_lock(pid_t pid, const FileIdentity& file, off_t byte) {
  return a_descriptor_tells(pid, file, [byte](std::string_view info) { return tells_lock(info, byte); })
      .value_or(false);
}

std::optional<bool> has_flock(pid_t pid, const FileIdentity& file) {
  return a_descriptor_tells(
      pid, file, [](std::string_view info) { return info.find(" FLOCK ") != std::string_view::npos; });
}

std::vector<pid_t> processes_with_flock(const FileIdentity& file) {
  std::vector<pid_t> found;
  for (const pid_t pid : processes_here()) {
    if (pid != ::getpid() && has_flock(pid, file).value_or(false)) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> processes_that_lock(const FileIdentity& file, off_t byte) {
  std::vector<pid_t> found = processes_that_can_write(file);
  std::erase_if(found, [&](pid_t pid) { return !shares_lock(pid, file, byte); });
  return found;
}

Descriptor process_exit(pid_t pid) {
  // glibc has a function for this only since 2.36.
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

std::optional<std::string> process_variable(pid_t pid, std::string_view name) {
  const auto text = read_whole(path_of_shared(pid, "environ"), kMostOfEnvironment);
  if (!text) return std::nullopt;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return std::string(entry.substr(name.size() + 1));
  }
  return "";
}

std::string process_name(pid_t pid) {
  auto text = read_whole(proc_path(pid, "comm")).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string process_command(pid_t pid) {
  auto text = read_whole(path_of_shared(pid, "cmdline"), kMostOfCommand).value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text.empty() ? process_name(pid) : text;
}

bool in_nested_pid_namespace(const std::string& proc) {
  // The kernel gives the first namespace of each kind a fixed number.
  constexpr std::string_view kFirst = "pid:[4026531836]";
  std::array<char, 64> target{};
  const ssize_t length = ::readlink((proc + "/self/ns/pid").c_str(), target.data(), target.size());
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) != kFirst;
}

std::vector<pid_t> own_children() {
  const auto text = read_whole("/proc/thread-self/children");
  if (!text) return pids_of(ProcessTree().below(::getpid()));
  std::vector<pid_t> children;
  for (const auto word : std::views::split(*text, ' ')) {
    if (const auto child = pid_from_name(std::string(word.begin(), word.end()))) children.push_back(*child);
  }
  return children;
}

ProcessTree::ProcessTree() {
  for (const pid_t pid : processes_here()) {
    const auto stat = process_stat(pid);
    if (stat && !stat->ended()) children_.emplace(stat->parent, stat->process);
  }
}

std::vector<UniqueProcess> ProcessTree::below(
    pid_t pid, const std::function<bool(const UniqueProcess&)>& is_left_out) const {
  std::vector<UniqueProcess> found;
  for (std::vector<pid_t> open{pid}; !open.empty();) {
    const auto [first, last] = children_.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      const UniqueProcess& process = child->second;
      if (is_left_out(process)) continue;
      found.push_back(process);
      open.push_back(static_cast<pid_t>(process.pid));
    }
  }
  return found;
}

}  // namespace berth::sys
