#include "berth/supervise/calling_shell.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "berth/sys/file.h"
#include "berth/sys/process_identity.h"

namespace berth::supervise {
namespace {

constexpr int kDeepest = 16;

std::string program_of(pid_t pid) {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
  return length < 0 ? "" : std::string(path.data(), static_cast<std::size_t>(length));
}

std::optional<sys::FileIdentity> output_of(pid_t pid) {
  struct stat status{};
  if (::stat(fmt::format("/proc/{}/fd/1", pid).c_str(), &status) != 0) return std::nullopt;
  return sys::identity_of(status);
}

// Made by fork alone, so it runs the same program with the same words, but what it writes goes
// elsewhere. A shell that somebody started in a shell has the same terminal.
bool is_copy_for_substitution(pid_t pid, pid_t parent) {
  const std::string program = program_of(pid);
  const auto output = output_of(pid);
  return !program.empty() && program == program_of(parent) && output && output != output_of(parent) &&
         sys::process_command(pid) == sys::process_command(parent);
}

}  // namespace

pid_t calling_shell() {
  pid_t pid = ::getppid();
  for (int depth = 0; depth < kDeepest; ++depth) {
    const auto stat = sys::process_stat(pid);
    if (!stat || stat->parent <= 1 || !is_copy_for_substitution(pid, stat->parent)) break;
    pid = stat->parent;
  }
  return pid;
}

ShellKind shell_kind(pid_t process) {
  const std::string path = program_of(process);
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name == "bash") return ShellKind::bash;
  if (name.starts_with("zsh")) return ShellKind::zsh;
  return name == "fish" ? ShellKind::fish : ShellKind::other;
}

}  // namespace berth::supervise
