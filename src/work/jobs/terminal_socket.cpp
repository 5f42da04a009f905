#include "berth/jobs/terminal_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

/// A short name for a path of any length: the address of a socket has room for 107 bytes.
struct ShortName {
  sys::Descriptor folder;
  sockaddr_un address{};
};

Result<ShortName> short_name_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  ShortName name;
  name.folder =
      sys::Descriptor(::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!name.folder) return sys::fail_errno("opening the folder of " + path);
  const std::string text = fmt::format("/proc/self/fd/{}/{}", name.folder.get(), path.substr(slash + 1));
  if (text.size() >= sizeof name.address.sun_path) return fail(ErrorCode::failure, path + " is too long");
  name.address.sun_family = AF_UNIX;
  std::ranges::copy(text, std::begin(name.address.sun_path));
  return name;
}

const sockaddr* as_address(const ShortName& name) {
  return reinterpret_cast<const sockaddr*>(&name.address);
}

}  // namespace

Result<sys::Descriptor> listen_for_terminals(const std::string& path) {
  BERTH_LET(const ShortName name, short_name_of(path));
  sys::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return sys::fail_errno("making the socket of the job's terminal");
  // An earlier run that was killed has left its own.
  ::unlink(path.c_str());
  // Before it has a name. The folder keeps others out anyway.
  ::fchmod(socket.get(), 0600);
  constexpr int kBacklog = 8;
  if (::bind(socket.get(), as_address(name), sizeof name.address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return sys::fail_errno("making " + path);
  return socket;
}

sys::Descriptor accept_terminal(int listening) {
  sys::Descriptor peer(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred who{};
  socklen_t size = sizeof who;
  if (!peer || ::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return {};
  return who.uid == ::geteuid() ? std::move(peer) : sys::Descriptor();
}

Result<sys::Descriptor> connect_to_terminal(const std::string& path) {
  BERTH_LET(const ShortName name, short_name_of(path));
  sys::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), as_address(name), sizeof name.address) != 0)
    return sys::fail_errno("connecting to " + path);
  return socket;
}

}  // namespace berth::jobs
