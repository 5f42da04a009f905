#include "berth/sys/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "berth/base/error.h"
#include "berth/sys/file.h"

namespace berth::sys {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// Without a file: nothing to set a mode of, and nothing left behind by who is killed.
Address abstract(const std::string& name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.name.sun_path) - 1);
  std::copy_n(name.begin(), length, address.name.sun_path + 1);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

Descriptor datagram_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

Bell::Bell(const std::string& name) : socket_(datagram_socket()) {
  const Address address = abstract(name);
  if (socket_ && ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) != 0)
    socket_.close();
}

bool Bell::has_rung() const {
  std::array<char, 1> nothing{};
  bool rung = false;
  while (socket_ && ::recv(socket_.get(), nothing.data(), nothing.size(), 0) >= 0) rung = true;
  return rung;
}

BellSignal::BellSignal(const Bell& bell) : descriptor_(bell.descriptor()) {
  if (descriptor_ < 0) return;
  ::fcntl(descriptor_, F_SETOWN, ::getpid());
  ::fcntl(descriptor_, F_SETSIG, 0);
  ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) | O_ASYNC);
}

BellSignal::~BellSignal() {
  if (descriptor_ < 0) return;
  ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_ASYNC);
  // If it were let through again, it would kill this process.
  const timespec at_once{};
  sigset_t signal;
  ::sigemptyset(&signal);
  ::sigaddset(&signal, SIGIO);
  ::sigtimedwait(&signal, nullptr, &at_once);
}

void ring(const std::string& name) {
  const Descriptor socket = datagram_socket();
  const Address address = abstract(name);
  if (socket)
    ::sendto(socket.get(), "", 1, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address.name),
             address.bytes);
}

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

namespace {

// The kernel's bound for one message (SCM_MAX_FD).
constexpr std::size_t kMostDescriptors = 253;
constexpr std::size_t kPiece = 16 << 10;

union Control {
  cmsghdr header;  // for its alignment
  std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> bytes;
};

void attach(msghdr& message, Control& control, std::span<const int> descriptors) {
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
}

void take_descriptors(msghdr& message, std::vector<Descriptor>& into) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
      into.emplace_back(descriptor);
    }
  }
}

}  // namespace

Result<void> send_message(int socket, std::string_view text, std::span<const int> descriptors) {
  if (descriptors.size() > kMostDescriptors)
    return fail(ErrorCode::failure, "more devices than one message can hand over");
  Control control{};
  while (!text.empty()) {
    iovec piece{const_cast<char*>(text.data()), text.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) attach(message, control, descriptors);
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail_errno("sending to the process at the other end");
    text.remove_prefix(static_cast<std::size_t>(sent));
    descriptors = {};
  }
  return {};
}

Result<Received> receive_message(int socket) {
  Received received;
  Control control{};
  std::array<char, kPiece> bytes;
  for (;;) {
    iovec piece{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ssize_t length = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return received;
    // A peer that ends without having read all resets the connection.
    if (length < 0 && errno != ECONNRESET) return fail_errno("receiving from the process at the other end");
    if (length <= 0) {
      received.ended = true;
      return received;
    }
    take_descriptors(message, received.descriptors);
    if ((message.msg_flags & MSG_CTRUNC) != 0)
      return fail(ErrorCode::failure,
                  "not all descriptors could be received (is the limit of open files reached?)");
    received.text.append(bytes.data(), static_cast<std::size_t>(length));
  }
}

bool is_all_read(int socket) {
  int unread = 0;
  return ::ioctl(socket, SIOCOUTQ, &unread) != 0 || unread == 0;
}

}  // namespace berth::sys
