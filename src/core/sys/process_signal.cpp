#include "berth/sys/process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include <fmt/format.h>

#include "berth/sys/file.h"

namespace berth::sys {
namespace {

// The value of the SIGTERM that cancels a request; any that nobody else sends.
constexpr int kCancelled = 0x6274;

/// A process that was found by its pid. While a process has a descriptor, the descriptor means it
/// and no other: what was read of the pid in between is true of it, or it has ended and gets no
/// signal.
class FoundProcess {
 public:
  explicit FoundProcess(pid_t pid) : pid_(pid), process_(process_exit(pid)) {
    has_ended_ = !process_ && errno == ESRCH;
  }

  bool is(const IsMeant& is_meant) const { return !has_ended_ && is_meant(pid_); }

  bool send(int signal) const {
    if (process_) return ::syscall(SYS_pidfd_send_signal, process_.get(), signal, nullptr, 0) == 0;
    return ::kill(pid_, signal) == 0;
  }

  // Queued, which no signal to a group is: so a holder of a lease knows that it is meant, also if a
  // process of its own job asks.
  bool queue(int signal, int value) const {
    if (!process_) return ::sigqueue(pid_, signal, {.sival_int = value}) == 0;
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_int = value;
    return ::syscall(SYS_pidfd_send_signal, process_.get(), signal, &info, 0) == 0;
  }

 private:
  pid_t pid_;
  Descriptor process_;
  bool has_ended_ = false;
};

bool send_term(pid_t pid, int value, const IsMeant& is_meant) {
  const FoundProcess found(pid);
  if (!found.is(is_meant) || !found.queue(SIGTERM, value)) return false;
  found.send(SIGCONT);
  return true;
}

IsMeant this_very(const UniqueProcess& process) {
  return [process](pid_t) { return process_stat(process).has_value(); };
}

}  // namespace

bool send_signal(pid_t pid, int signal, const IsMeant& is_meant) {
  const FoundProcess found(pid);
  return found.is(is_meant) && found.send(signal);
}

bool send_signal(const UniqueProcess& process, int signal) {
  return send_signal(static_cast<pid_t>(process.pid), signal, this_very(process));
}

bool ask_to_end(pid_t pid, const IsMeant& is_meant) {
  return send_term(pid, 0, is_meant);
}

bool ask_to_end(const UniqueProcess& process) {
  return ask_to_end(static_cast<pid_t>(process.pid), this_very(process));
}

bool ask_to_cancel(pid_t pid, const IsMeant& is_meant) {
  return send_term(pid, kCancelled, is_meant);
}

bool ask_to_cancel(const UniqueProcess& process) {
  return ask_to_cancel(static_cast<pid_t>(process.pid), this_very(process));
}

bool is_cancel(const siginfo_t& signal) {
  return signal.si_signo == SIGTERM && signal.si_code == SI_QUEUE && signal.si_value.sival_int == kCancelled;
}

namespace {

constexpr std::size_t kContainerId = 64;
constexpr std::size_t kShownOfId = 12;

// A path like …/docker-0123….scope or /docker/0123… has it; "": docker did not make the cgroup.
std::string container_of(std::string_view path) {
  for (const std::string_view before : {"/docker-", "/docker/"}) {
    const auto at = path.find(before);
    if (at == std::string_view::npos) continue;
    const std::string_view id = path.substr(at + before.size(), kContainerId);
    const auto is_digit = [](unsigned char byte) { return std::isxdigit(byte) != 0; };
    if (id.size() == kContainerId && std::ranges::all_of(id, is_digit))
      return std::string(id.substr(0, kShownOfId));
  }
  return "";
}

bool is_plain(unsigned char byte) {
  return std::isalnum(byte) != 0 || std::string_view("_./@:-\\").contains(static_cast<char>(byte));
}

// `value`: what thaws, written into `file`, which is below /sys/fs/cgroup.
Halted frozen_at(std::string_view path, std::string_view value, std::string_view file) {
  if (const std::string container = container_of(path); !container.empty())
    return {"frozen by docker", "docker unpause " + container};
  // Its user may have chosen the name, and somebody else is to give it to a shell.
  if (!std::ranges::all_of(path, is_plain)) return {"frozen by its cgroup", ""};
  return {fmt::format("frozen by its cgroup {}", path),
          fmt::format("echo {} > '/sys/fs/cgroup{}'", value, file)};
}

std::string_view parent_of(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

std::optional<Halted> what_freezes(
    std::string_view cgroups, const std::function<std::optional<std::string>(const std::string&)>& read) {
  const auto says = [&](const std::string& file, std::string_view what) {
    const auto text = read(file);
    return text && text->find(what) != std::string::npos;
  };
  while (!cgroups.empty()) {
    const std::string_view line = cgroups.substr(0, cgroups.find('\n'));
    cgroups.remove_prefix(std::min(line.size() + 1, cgroups.size()));
    const auto colon = line.find(':');
    const auto second = line.find(':', colon + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(colon + 1, second - colon - 1);
    // A frozen cgroup freezes all below it.
    for (std::string_view path = line.substr(second + 1); path.size() > 1; path = parent_of(path)) {
      const std::string v1 = fmt::format("/freezer{}/freezer.state", path);
      if (controllers == "freezer" && says(v1, "FROZEN") &&
          !says(fmt::format("/freezer{}/freezer.self_freezing", path), "0"))
        return frozen_at(path, "THAWED", v1);
      if (!controllers.empty()) continue;
      for (const std::string_view mounted : {"", "/unified"}) {
        const std::string v2 = fmt::format("{}{}/cgroup.freeze", mounted, path);
        if (says(v2, "1")) return frozen_at(path, "0", v2);
      }
    }
  }
  return std::nullopt;
}

std::optional<Halted> what_halts(pid_t pid) {
  const auto stat = process_stat(pid);
  if (!stat) return std::nullopt;
  if (stat->stopped()) return Halted{"stopped", fmt::format("kill -CONT {}", pid)};
  const auto cgroups = read_whole(fmt::format("/proc/{}/cgroup", pid));
  if (!cgroups) return std::nullopt;
  return what_freezes(*cgroups, [](const std::string& file) -> std::optional<std::string> {
    auto text = read_whole("/sys/fs/cgroup" + file);
    return text ? std::optional(*std::move(text)) : std::nullopt;
  });
}

}  // namespace berth::sys
