#include "berth/sys/bell.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>

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

}  // namespace berth::sys
