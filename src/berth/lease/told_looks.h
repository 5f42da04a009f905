#pragma once

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

/// The agent's side.
class LookTeller {
 public:
  /// Tells this look, as look_for_samplers, to all that have connected since the last call. It
  /// waits for none of them. null: the machine did not answer, and they look themselves. If this
  /// process is not root's, nobody asks.
  void tell(const std::string& path, const Snapshot* look);

 private:
  void listen(const std::string& path);

  std::optional<sys::SocketName> name_;
  sys::Descriptor socket_;
};

}  // namespace berth::leasing
