#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/device/device.h"
#include "berth/source/nvml/library.h"
#include "berth/source/proc/process_details.h"
#include "berth/source/source.h"

namespace berth::nvml {

/// The Xids that the driver reports as events while somebody looks again and again. Nobody but root
/// may read them in the kernel's log, and events are for everybody; but the driver keeps them only
/// for a client that has registered before.
class XidEvents {
 public:
  /// Takes what has come since the last time. Never waits.
  void take(Library& library);
  /// From now on, the events of this GPU come too. Asks the driver once for each GPU.
  void watch(Library& library, unsigned index);
  /// Gives the GPU, or its instance, the Xid that says most, if the kernel's log does not tell.
  void note(Device& device) const;
  /// The library starts again, and what was registered is gone.
  void forget() { *this = {}; }

 private:
  struct Watched {
    Handle handle = nullptr;
    unsigned xid = 0;  ///< 0: none has come
  };

  EventSet set_ = nullptr;
  std::map<unsigned, Watched> watched_;  ///< by index
};

/// Reads the machine through libnvidia-ml.so.1. Only what the readings need is called.
class NvmlReader : public source::Reader {
 public:
  using Load = std::function<Result<Library>()>;
  explicit NvmlReader(Load load = Library::load) : load_(std::move(load)) {}

  /// Loads and starts the driver's library, once. Error: `no_driver`, with the remedy; a later call
  /// tries again.
  Result<void> prepare();
  bool found() override { return prepare().has_value() || library_.has_value(); }
  Result<void> read(const source::ReadRequest& request, source::Sink& sink) override;

 private:
  Result<unsigned> count_devices();
  Result<void> start_again();
  void read_topology(const source::ReadRequest& request, const std::vector<Device>& gpus, source::Sink& sink);
  std::string driver_version();

  Load load_;
  std::optional<Library> library_;
  bool started_ = false;
  bool no_gpu_ = false;
  /// Access to all devices went away (a container after `systemctl daemon-reload`): only a new
  /// start may bring it back.
  bool start_again_ = false;
  XidEvents events_;
  source::UserNames names_;
};

struct TopologyMember {
  std::string uuid;
  Handle handle;
};

/// How the GPUs are joined. Slow: some drivers take more than half a second a pair. What a pair
/// does not tell counts as farthest apart.
Topology read_topology(Library& library, const std::vector<TopologyMember>& members);

}  // namespace berth::nvml
