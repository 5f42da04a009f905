#include "berth/sys/halted.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "berth/sys/file.h"
#include "berth/sys/process_identity.h"

namespace berth::sys {
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
