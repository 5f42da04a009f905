#pragma once

#include "berth/source/proc/user_names.h"
#include "berth/source/reader.h"

namespace berth::nvidia_smi {

/// True if PATH has a program of that name.
bool is_installed();

/// Reads the machine through the program nvidia-smi: for where the driver's library cannot be loaded. Says
/// what the program can say, in the same words as NvmlReader.
class NvidiaSmiReader : public source::Reader {
 public:
  Result<void> read(const source::ReadRequest& request, source::Sink& sink) override;

 private:
  source::UserNames names_;
};

}  // namespace berth::nvidia_smi
