#include "berth/sys/named_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "berth/base/version.h"

namespace berth::sys {
namespace {

Descriptor new_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

std::optional<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer;
}

}  // namespace

bool SocketName::operator==(const SocketName& other) const {
  return owner == other.owner && length == other.length &&
         std::memcmp(&address, &other.address, sizeof address) == 0;
}

// Another Berth may have other words.
std::optional<SocketName> socket_name(std::string_view what, uid_t owner, const std::string& path,
                                      std::string_view more) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  const std::string text =
      fmt::format("berth-{} {} {}:{} {} {}", what, owner, status.st_dev, status.st_ino, more, version());
  SocketName name;
  name.owner = owner;
  name.address.sun_family = AF_UNIX;
  // The first byte is 0: no file.
  const std::size_t length = std::min(text.size(), sizeof name.address.sun_path - 1);
  std::memcpy(name.address.sun_path + 1, text.data(), length);
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return name;
}

std::optional<pid_t> own_peer(int socket) {
  const auto peer = peer_of(socket);
  return peer && peer->uid == ::geteuid() ? std::optional(peer->pid) : std::nullopt;
}

std::optional<uid_t> peer_user(int socket) {
  const auto peer = peer_of(socket);
  return peer ? std::optional(peer->uid) : std::nullopt;
}

Descriptor accept_own(int listening) {
  constexpr std::chrono::milliseconds kMoment{100};
  // Strangers may connect as fast as this process sends them away, and it has other things to do.
  constexpr int kMostStrangers = 256;
  for (int strangers = 0; strangers < kMostStrangers; ++strangers) {
    Descriptor connection(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection && !own_peer(connection.get())) continue;
    if (!connection && (errno == EMFILE || errno == ENFILE)) std::this_thread::sleep_for(kMoment);
    return connection;
  }
  return {};
}

Descriptor connect_to(const SocketName& name) {
  Descriptor socket = new_socket();
  if (!socket || ::connect(socket.get(), name.get(), name.length) != 0) return {};
  const auto peer = peer_of(socket.get());
  // Without a number it is of another pid namespace, whose pids are others.
  if (!peer || peer->uid != name.owner || peer->pid == 0) return {};
  return socket;
}

Descriptor listen_at(const SocketName& name) {
  Descriptor socket = new_socket();
  if (!socket || ::bind(socket.get(), name.get(), name.length) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return {};
  return socket;
}

}  // namespace berth::sys
