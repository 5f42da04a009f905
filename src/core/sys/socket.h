#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/file.h"

namespace berth::sys {

/// A datagram socket by which any process that knows its name can wake its owner. The kernel
/// removes it with the owner's process. Its name is one of this network namespace. Anybody may
/// ring, so a ring is only a hint.
class Bell {
 public:
  /// If the name is taken, or if there is no socket, it never rings.
  explicit Bell(const std::string& name);

  int descriptor() const { return socket_.get(); }

  /// Whether somebody has rung since the last call. Of very many rings the next call tells as well.
  bool has_rung() const;

 private:
  Descriptor socket_;
};

/// As long as this object lives, a ring also sends SIGIO to this process. Afterwards no SIGIO is
/// left pending. REQUIRES: the bell outlives this object, and SIGIO is blocked meanwhile.
class BellSignal {
 public:
  explicit BellSignal(const Bell& bell);
  ~BellSignal();
  BellSignal(const BellSignal&) = delete;
  BellSignal& operator=(const BellSignal&) = delete;

 private:
  int descriptor_;
};

/// Rings, if there is such a bell. Never blocks.
void ring(const std::string& name);

// A name in the kernel's abstract space of sockets: both the lock of a process that serves others,
// and the way to it. Only one process can have the name, and the name is gone with it. Another user
// may take the name first; the kernel tells whose a socket is.
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

/// Sends all of `text` over a Unix stream socket, and copies of the descriptors with its first
/// byte. Never raises SIGPIPE. Error: `failure`, also if nobody is at the other end.
Result<void> send_message(int socket, std::string_view text, std::span<const int> descriptors = {});

/// What has arrived over such a socket.
struct Received {
  std::string text;
  std::vector<Descriptor> descriptors{};  ///< close-on-exec
  bool ended = false;                     ///< the other end is closed, and nothing is left
};
/// Reads what has arrived, without waiting for more. Error: `failure`.
Result<Received> receive_message(int socket);

/// Whether the other end has read all that was sent to it.
bool is_all_read(int socket);

}  // namespace berth::sys
