#pragma once

#include <cstddef>

// How much a hub reads and keeps of what its agents tell.
namespace berth::hub {

/// How much of an agent's answer is read, in bytes, if there are this many agents. It is enough for
/// a machine with hundreds of processes.
std::size_t most_of_answer(std::size_t agents);

/// How much memory all hosts together may take. Half of it is divided into equal shares; the other
/// half is for hosts that need more than their share.
class HostShares {
 public:
  explicit HostShares(std::size_t hosts);
  /// How much a host takes of the common half.
  std::size_t beyond_share(std::size_t entry_bytes) const;
  /// Whether there is room for this entry, if the other hosts take `others_beyond` of the common
  /// half.
  bool has_room(std::size_t entry_bytes, std::size_t others_beyond) const;

 private:
  std::size_t share_;
};

}  // namespace berth::hub
