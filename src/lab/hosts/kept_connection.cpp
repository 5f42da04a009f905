// For a command on another machine, the login takes most of the time. So a connection is kept for a
// while and serves the next commands. ssh itself keeps it (ControlMaster): if anything is wrong
// with it, ssh makes another one. Whoever can open its socket can do on the host all that the user
// can. So the socket is in a folder that only the user can open.

#include "berth/hosts/kept_connection.h"

#include <dirent.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>

#include "berth/base/fnv_hash.h"
#include "berth/store/own_folder.h"
#include "berth/sys/clock.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/environment.h"
#include "berth/sys/quiet_write.h"

namespace berth::hosts {
namespace {

// ssh binds the socket under the name with a dot and 16 letters more, and then renames it.
constexpr std::size_t kAddedBySsh = 17;
constexpr std::size_t kLongestSocket = sizeof(sockaddr_un::sun_path) - 1 - kAddedBySsh;

struct Setting {
  std::string_view name;
  std::string_view usual;  ///< what ssh does without a word about it
};
// The user shares connections, and knows why and how.
constexpr std::array kSharing{Setting{"controlmaster", "false"}, Setting{"controlpath", "none"},
                              Setting{"controlpersist", "no"}};
// A connection has these from the login that made it. A later command over a kept connection would
// use those of an earlier login.
constexpr std::array kOfOneLogin{Setting{"forwardagent", "no"}, Setting{"forwardx11", "no"},
                                 Setting{"gssapidelegatecredentials", "no"}, Setting{"tunnel", "false"}};

std::optional<std::string_view> value_of(std::string_view settings, std::string_view name) {
  while (!settings.empty()) {
    const std::size_t end = std::min(settings.find('\n'), settings.size());
    const std::string_view line = settings.substr(0, end);
    settings.remove_prefix(std::min(end + 1, settings.size()));
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ')
      return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

bool are_usual(std::string_view settings, std::span<const Setting> these) {
  return std::ranges::all_of(these, [&](const Setting& each) {
    return value_of(settings, each.name).value_or(each.usual) == each.usual;
  });
}

bool is_for_user_alone(const std::string& folder) {
  struct stat found{};
  return ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & 0077U) == 0;
}

// A user who can write in the folder above could put another one in its place.
bool is_written_by_user_alone(const std::string& folder) {
  struct stat found{};
  return ::stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
         (found.st_mode & 0022U) == 0;
}

std::string folder_below(const std::string& above, std::string_view name) {
  if (!is_written_by_user_alone(above)) return "";
  std::string folder = fmt::format("{}/{}", above, name);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return "";
  return is_for_user_alone(folder) ? folder : "";
}

struct Asker {
  sys::Descriptor socket{};
  int error = 0;  ///< 0: somebody listens there; else why not, as errno has it
};

Asker connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {.error = ENAMETOOLONG};
  path.copy(address.sun_path, path.size());
  Asker asker{sys::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  const int socket = asker.socket.get();
  if (!asker.socket || ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    asker.error = errno;
  return asker;
}

/// A message to an ssh that keeps a connection (PROTOCOL.mux of OpenSSH): two numbers, after their
/// length.
std::string to_keeper(std::uint32_t first, std::uint32_t second) {
  std::string message;
  for (const std::uint32_t each : {std::uint32_t{8}, first, second})
    for (const unsigned shift : {24U, 16U, 8U, 0U}) message += static_cast<char>(each >> shift & 0xFFU);
  return message;
}

// ssh gives a socket that it makes a name with a dot, and listens a moment later. A crash leaves
// that name.
bool is_being_made(const std::string& path, std::string_view name) {
  constexpr std::time_t kMoment = 60;
  struct stat found{};
  return name.contains('.') && (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode) ||
                                found.st_mtime > std::time(nullptr) - kMoment);
}

}  // namespace

std::optional<KeptConnection> kept_connection(std::string_view settings, const std::string& folder,
                                              std::string_view machine) {
  if (settings.empty() || folder.empty()) return std::nullopt;
  if (!are_usual(settings, kSharing) || !are_usual(settings, kOfOneLogin)) return std::nullopt;
  // A user has few hosts, and nobody else chooses what is hashed.
  KeptConnection kept{.socket = fmt::format("{}/{:016x}", folder, fnv_hash(machine, fnv_hash(settings)))};
  // ssh would read a sign of its own in the path.
  if (kept.socket.size() > kLongestSocket || kept.socket.find_first_of("% \"") != std::string::npos)
    return std::nullopt;
  kept.options = {"ControlMaster=auto", fmt::format("ControlPath={}", kept.socket), "ControlPersist=60"};
  // A network that is gone ends it within 15 s, where the user has not said otherwise.
  if (value_of(settings, "serveraliveinterval").value_or("0") == "0")
    kept.options.insert(kept.options.end(), {"ServerAliveInterval=5", "ServerAliveCountMax=2"});
  return kept;
}

std::string folder_of_kept() {
  const std::string runtime(sys::variable("XDG_RUNTIME_DIR"));
  if (!runtime.empty()) return runtime.starts_with('/') ? folder_below(runtime, "berth") : "";
  const auto state = store::state_folder();
  if (!state) return "";
  const std::string above = fmt::format("{}/berth", *state);
  // Others may read on the way, and may not write. A home of another user stays as it is.
  if (!store::is_safe_from_others(above)) return "";
  (void)store::make_folders(above);  // whether it is there shows next
  if (!store::is_safe_from_others(above).value_or(false)) return "";
  return folder_below(above, "ssh");
}

bool is_there(const KeptConnection& kept) {
  const int error = connect_to(kept.socket).error;
  return error == 0 || error == EAGAIN;  // many ask at once
}

void end_kept(const KeptConnection& kept) {
  constexpr std::uint32_t kHello = 1;
  constexpr std::uint32_t kVersion = 4;
  constexpr std::uint32_t kTerminate = 0x10000005;
  const Asker asker = connect_to(kept.socket);
  if (asker.error != 0) return;
  const std::string message = to_keeper(kHello, kVersion) + to_keeper(kTerminate, 0);
  (void)sys::write_without_signal(asker.socket.get(), message.data(), message.size());
  // It reads nothing of somebody who has gone before it has greeted.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::array<char, 64> answer{};
  for (;;) {
    pollfd polled{asker.socket.get(), POLLIN, 0};
    if (::poll(&polled, 1, sys::poll_timeout(until)) <= 0) return;
    if (::read(asker.socket.get(), answer.data(), answer.size()) <= 0) return;
  }
}

void sweep_kept(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name(entry->d_name);
    const std::string path = fmt::format("{}/{}", folder, name);
    if (!is_being_made(path, name) && connect_to(path).error == ECONNREFUSED) ::unlink(path.c_str());
  }
}

}  // namespace berth::hosts
