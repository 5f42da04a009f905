#pragma once

#include <functional>
#include <optional>

#include "berth/source/nvml/library.h"
#include "berth/source/nvml/xid_events.h"
#include "berth/source/proc/user_names.h"
#include "berth/source/reader.h"

namespace berth::nvml {

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

}  // namespace berth::nvml
