#pragma once

#include <map>
#include <optional>
#include <string>

#include "berth/device/device.h"
#include "berth/source/source.h"
#include "berth/sys/file.h"
#include "berth/sys/socket.h"

// The agent of root looks at a machine every second, and tells each look to the samplers of users
// that have asked for it. So they need not ask the driver too. A sampler asks by a connection
// alone: the agent takes no word, descriptor or file of a user. The kernel tells the sampler that
// it is root who answers, and what any other user says counts for nothing.
namespace berth::receipts {

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

// The sampler: one process for each user and machine, which looks at the GPUs of the user's runs
// again and again.
//
// A name in the kernel's abstract space of sockets is both the lock and the way to it: only one
// process can have the name, and it ends with the process. A run connects, and sends a SampledLease
// and a file in memory, into which the sampler writes a RunSamples after each look. The connection
// is the run's wish: when the kernel closes it, however the run ended, the sampler forgets the run,
// and it ends with the last one. It has no descriptor of a lease, and keeps nothing on a disk.
//
// Another user may take the name first. The kernel tells whose a socket is, and then there are no
// samples.

/// A connection to the sampler of this user for the machine whose lease directory is at `path`. It
/// is started if there is none. Empty: there is none, and none can be.
sys::Descriptor connect_to_sampler(const std::string& path, source::SourceKind source);

}  // namespace berth::receipts
