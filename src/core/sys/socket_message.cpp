#include "berth/sys/socket_message.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "berth/sys/system_error.h"

namespace berth::sys {
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
