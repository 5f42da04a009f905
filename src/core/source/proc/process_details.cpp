#include "berth/source/proc/process_details.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "berth/base/record.h"
#include "berth/source/proc/kernel_files.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"

namespace berth::source {
namespace {

bool is_exiting(std::string_view stat) {
  const auto told = sys::parse_process_stat(stat);
  return told && told->exiting;
}

/// /proc/PID/stat: "4711 (a (strange) name) S 1 …". The name may hold anything, so it ends at the
/// last parenthesis.
void read_stat(std::string_view text, Process& process) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
  process.command = text.substr(open + 1, close - open - 1);
  const auto told = sys::parse_process_stat(text);
  if (!told) return;
  process.start_ticks = told->process.start_ticks;
  static const auto ticks_per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  process.started_at_s =
      sys::booted_at_s() + static_cast<std::int64_t>(*process.start_ticks / ticks_per_second);
}

/// The real user. The owner of /proc/PID will not do: it is root for a process that may not be
/// dumped.
Reading<std::uint32_t> uid_in_status(std::string_view text) {
  const std::size_t at = text.find("\nUid:");
  if (at == std::string_view::npos) return std::nullopt;
  constexpr std::string_view kSpace = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace, at + 5), text.size()));
  return number_from_text<std::uint32_t>(text.substr(0, text.find_first_of(kSpace)));
}

/// Arguments end with NUL each; a program that sets its title may pad with more of them.
std::string command_in_cmdline(std::string text) {
  text.erase(text.find_last_not_of('\0') + 1);
  std::ranges::replace(text, '\0', ' ');
  return text;
}

bool is_container_id(std::string_view text) {
  constexpr std::size_t kIdLength = 64;
  return text.size() == kIdLength && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The container named by one step of a cgroup's path: "docker-ID.scope",
/// "cri-containerd-ID.scope", "crio-ID.scope", "libpod-ID.scope", "ID", "lxc.payload.NAME".
std::string_view container_in_step(std::string_view step) {
  constexpr std::string_view kLxc = "lxc.payload.";
  if (step.starts_with(kLxc)) return step.substr(kLxc.size());
  if (step.ends_with(".scope")) step.remove_suffix(6);
  const std::size_t prefix = step.find_last_of("-:");
  if (prefix != std::string_view::npos) step.remove_prefix(prefix + 1);
  return is_container_id(step) ? step : std::string_view{};
}

std::string_view container_in_path(std::string_view path) {
  std::string_view innermost;
  std::string_view previous;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view step = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    const std::string_view found = previous == "lxc" ? step : container_in_step(step);
    if (!found.empty()) innermost = found;
    previous = step;
  }
  return innermost;
}

}  // namespace

std::string container_in_cgroup(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    // HIERARCHY:CONTROLLERS:PATH
    const std::size_t path = line.find(':', line.find(':') + 1);
    if (path == std::string_view::npos) continue;
    const std::string_view container = container_in_path(line.substr(path + 1));
    if (!container.empty()) return std::string(container);
  }
  return {};
}

namespace {

/// Whether all threads of a process are exiting. Its first one may end while others compute.
bool others_exit_too(const std::string& directory) {
  const sys::Descriptor threads(::open((directory + "/task").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto entries = sys::list_directory(threads.get());
  return entries && std::ranges::all_of(*entries, [&](const sys::DirectoryEntry& thread) {
           const auto stat = read_small_file(directory + "/task/" + thread.name + "/stat");
           return !stat || is_exiting(*stat);
         });
}

}  // namespace

Process ProcessDetails::read(std::uint32_t pid) {
  Process process;
  const std::string directory = proc_ + '/' + std::to_string(pid);
  const auto stat = read_small_file(directory + "/stat");
  if (!stat) {
    missed_some_ = true;
    return process;
  }
  read_stat(*stat, process);
  if (is_exiting(*stat) && others_exit_too(directory)) process.ending = true;
  if (const auto status = read_small_file(directory + "/status")) process.uid = uid_in_status(*status);
  if (auto cmdline = read_small_file(directory + "/cmdline")) {
    std::string command = command_in_cmdline(std::move(*cmdline));
    if (!command.empty()) process.command = std::move(command);
  }
  if (const auto cgroup = read_small_file(directory + "/cgroup")) {
    process.container = container_in_cgroup(*cgroup);
  }
  return process;
}

void ProcessDetails::fill(Process& process) {
  auto known = known_.find(process.pid);
  if (known == known_.end()) known = known_.emplace(process.pid, read(process.pid)).first;
  Process details = known->second;
  details.pid = process.pid;
  details.kind = process.kind;
  details.used_bytes = process.used_bytes;
  process = std::move(details);
}

std::optional<std::string> UserNames::known(std::uint32_t uid) {
  if (!file_read_) read_file();
  const auto found = names_.find(uid);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

const std::string& UserNames::ask(std::uint32_t uid) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  std::string name;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    name = entry.pw_name;
  return names_.insert_or_assign(uid, std::move(name)).first->second;
}

/// Lines "alice:x:1000:…". The first line of a uid counts, as it does for the service.
void UserNames::read_file() {
  file_read_ = true;
  const auto text = read_small_file(passwd_, 256 << 10);
  if (!text) return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t newline = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(std::min(newline + 1, rest.size()));
    const std::size_t name_end = line.find(':');
    const std::size_t uid_begin = line.find(':', name_end + 1);
    if (name_end == std::string_view::npos || uid_begin == std::string_view::npos) continue;
    const std::string_view after = line.substr(uid_begin + 1);
    const auto uid = number_from_text<std::uint32_t>(after.substr(0, after.find(':')));
    if (uid) names_.emplace(*uid, line.substr(0, name_end));
  }
}

void ProcessDescriber::describe(Device& device) {
  if (!device.processes) return;
  for (Process& process : *device.processes) {
    details_.fill(process);
    if (!process.uid) continue;
    if (const auto name = names_.known(*process.uid)) {
      process.user = *name;
    } else {
      unnamed_.insert(*process.uid);
    }
  }
}

void ProcessDescriber::finish(Sink& sink) {
  if (details_.missed_some() && sys::in_nested_pid_namespace(proc_)) {
    sink.note(
        "This is a container with process ids of its own: the driver lists processes that cannot be seen "
        "from here, or none.");
  }
  if (unnamed_.empty()) return;
  sink.begin({.kind = Stage::Kind::users});
  for (const std::uint32_t uid : unnamed_) {
    if (const std::string& name = names_.ask(uid); !name.empty()) sink.user(uid, name);
  }
}

}  // namespace berth::source
