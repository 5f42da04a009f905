#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"

// Xids: what NVIDIA's driver writes into the kernel's log when something goes wrong on a GPU. Their
// line outlives the reset that healed the GPU, so they explain and never refuse.
namespace berth {

enum class XidKind {
  application,  ///< usually the fault of the program that ran
  driver,       ///< of the driver or of its firmware
  recorded,     ///< noted, or kept to one program: the GPU goes on
  change,       ///< the driver asks for something else than before (Health::recovery_action)
  hardware,
};

struct Xid {
  unsigned number;
  XidKind kind;
  std::string_view meaning;  ///< "the GPU fell off the bus"
};

/// Those that are known, in the order of their numbers.
const std::vector<Xid>& known_xids();
/// Null: it is not known.
const Xid* xid_of(std::uint64_t number);

/// "Xid 79: the GPU fell off the bus".
std::string xid_in_words(std::uint64_t number);

/// An Xid in the kernel's log.
struct SeenXid {
  std::string pci;  ///< "0000:07:00", in lower case
  unsigned number = 0;

  bool operator==(const SeenXid&) const = default;
};

/// Those in a text of the kernel's log as syslog(2) gives it, the oldest first. Only lines of the
/// kernel itself count: everybody who may write to the log can write there what looks like one.
std::vector<SeenXid> xids_in(std::string_view log);

/// Which of two says more of a device: the later one, but none of an application's if the other is
/// not. 0: none.
unsigned more_telling_xid(unsigned earlier, unsigned later);

/// The Xid that says most of the device. 0: there is none.
unsigned telling_xid(const std::vector<SeenXid>& seen, const Device& device);

}  // namespace berth
