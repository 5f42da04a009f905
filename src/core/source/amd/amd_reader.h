#pragma once

#include "berth/source/proc/kernel_files.h"
#include "berth/source/proc/user_names.h"
#include "berth/source/reader.h"

namespace berth::amd {

/// Reads a machine's AMD GPUs from what the kernel tells in sysfs and /proc. No
/// library is loaded.
///
/// Devices are those that compute, in the order in which ROCm's runtime counts
/// them (that of KFD's nodes), then cards that do not.
class AmdReader : public source::Reader {
 public:
  explicit AmdReader(kernel_files::Roots roots) : roots_(std::move(roots)) {}

  bool found() override;
  Result<void> read(const source::ReadRequest& request, source::Sink& sink) override;

 private:
  kernel_files::Roots roots_;
  source::UserNames names_;
};

}  // namespace berth::amd
