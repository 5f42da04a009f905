#pragma once

#include <map>
#include <optional>
#include <string>

#include "berth/device/snapshot.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/named_socket.h"

// The agent of root looks at a machine every second, and tells each look to the samplers of users
// that have asked for it. So they need not ask the driver too. A sampler asks by a connection
// alone: the agent takes no word, descriptor or file of a user. The kernel tells the sampler that
// it is root who answers, and what any other user says counts for nothing.
namespace berth::leasing {

/// Where the agent of root listens on the machine whose lease directory is at `path`. It is another
/// name in each pid namespace, since pids are others there. nullopt: there is no such directory.
std::optional<sys::SocketName> told_looks(const std::string& path);

/// The agent's side. If this process is not root's, nobody asks.
class LookTeller {
 public:
  /// Before a look: who has asked is to hear that one. An earlier look would be older than the
  /// question, and tell of processes that ended before it. One connection of each user: further
  /// ones are closed, until what the user was told last has been read.
  void hear(const std::string& path);
  /// Tells this look, as look_for_samplers, to those. It waits for none of them. null: the machine
  /// did not answer, and they look themselves; the same if a driver tells some of it to root alone.
  void tell(const Snapshot* look);

 private:
  struct Asker {
    sys::Descriptor connection;
    bool is_told = false;  ///< and has perhaps not read it: that is memory of this process
  };

  void listen(const std::string& path);

  std::optional<sys::SocketName> name_;
  sys::Descriptor socket_;
  std::map<uid_t, Asker> askers_;
};

}  // namespace berth::leasing
