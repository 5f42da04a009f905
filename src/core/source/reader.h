#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/words.h"
#include "berth/source/source.h"

namespace berth::source {

/// What a reader is about to do, and where it may hang.
struct Stage {
  enum class Kind {
    driver,  ///< finding the devices
    device,  ///< `index` of `count`
    topology,
    users,  ///< names of users, from the system's name service
    done,   ///< nothing more
  };
  Kind kind = Kind::driver;
  unsigned index = 0;
  unsigned count = 0;
  std::string vendor{};  ///< of the devices; "": kUntoldVendor

  bool operator==(const Stage&) const = default;
};
constexpr auto words_of(Stage::Kind) {
  return std::to_array<std::string_view>({"driver", "device", "topology", "users", "done"});
}

struct ReadRequest {
  ReadingSet readings;
  SourceKind kind = SourceKind::kAutomatic;
  /// The directory in which the reader may keep what it has learnt; "": none.
  std::string state_directory;
  /// The version of the Berth that asks; a probe of another version refuses. "": any.
  std::string version{};
  /// UUIDs of GPUs; of others nothing but the identity need be read. Empty: of all, all. A probe of
  /// another version may not know it, and reads all.
  std::vector<std::string> only{};

  bool operator==(const ReadRequest&) const = default;
};

/// Receives a snapshot while it is being read.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Called once, and first: what belongs to the machine as a whole.
  virtual void head(const Snapshot& head) = 0;
  virtual void begin(const Stage& stage) = 0;
  virtual void device(const Device& device) = 0;
  /// The name of a user, for this user's processes, which lack it so far.
  virtual void user(std::uint32_t uid, std::string_view name) = 0;
  virtual void topology(const Topology& topology) = 0;
  virtual void note(std::string_view note) = 0;
};

/// Reads the machine in this very process, and may hang with the driver. Only the probe uses it.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Whether its driver is here. Loads the library to find out; if the driver was missing, a later
  /// call looks again.
  virtual bool found() = 0;
  /// A device that fails is a row, not an error. Error: `no_driver`, before anything was put into
  /// the sink.
  virtual Result<void> read(const ReadRequest& request, Sink& sink) = 0;
};

}  // namespace berth::source
