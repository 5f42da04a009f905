#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/source/source.h"

namespace berth::source {

/// What a reader is about to do, and may not come back from.
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

struct ReadRequest {
  ReadingSet readings;
  SourceKind kind = SourceKind::kAutomatic;
  /// Where what was learnt once may be kept, "" for nowhere.
  std::string state_directory;
  /// Of the Berth that asks, which a probe of another one refuses; "" for any.
  std::string version{};

  bool operator==(const ReadRequest&) const = default;
};

/// Takes a snapshot as it is being read.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Once and first: what belongs to the machine as a whole.
  virtual void head(const Snapshot& head) = 0;
  virtual void begin(const Stage& stage) = 0;
  virtual void device(const Device& device) = 0;
  /// A name that the processes of this user lack so far.
  virtual void user(std::uint32_t uid, std::string_view name) = 0;
  virtual void topology(const Topology& topology) = 0;
  virtual void note(std::string_view note) = 0;
};

/// Reads the machine in this very process, and may hang with the driver: used inside the probe only.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Whether its driver is here. Loads what tells that; a later call looks anew, if it was not.
  virtual bool found() = 0;
  /// A device that fails is a row, not an error. Error: `no_driver`, before anything was put into the sink.
  virtual Result<void> read(const ReadRequest& request, Sink& sink) = 0;
};

}  // namespace berth::source
