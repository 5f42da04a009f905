#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

#include "berth/sys/descriptor.h"

// A name in the kernel's abstract space of sockets: both the lock of a process that serves others,
// and the way to it. Only one process can have the name, and the name is gone with it. Another user
// may take the name first; the kernel tells whose a socket is.
namespace berth::sys {

struct SocketName {
  sockaddr_un address{};
  socklen_t length = 0;
  uid_t owner = 0;  ///< whose process is to have the name

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  bool operator==(const SocketName& other) const;
};

/// The name of what `owner` has once for each machine, version of Berth, and `more`. `path`: of the
/// machine's lease directory. nullopt: there is no such directory.
std::optional<SocketName> socket_name(std::string_view what, uid_t owner, const std::string& path,
                                      std::string_view more);

/// Never waits. Empty: no process of the owner listens there.
Descriptor connect_to(const SocketName& name);
/// Does not block. Empty: another process has the name.
Descriptor listen_at(const SocketName& name);

/// The next process of this user that has connected to `listening`, which does not block. Empty:
/// none has, or many strangers have, or there is no descriptor left for it. Then this takes a
/// moment, because the socket stays readable.
Descriptor accept_own(int listening);

/// The process at the other end, if it is of this user.
std::optional<pid_t> own_peer(int socket);
/// The user at the other end.
std::optional<uid_t> peer_user(int socket);

}  // namespace berth::sys
