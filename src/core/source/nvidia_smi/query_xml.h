#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"

namespace berth::nvidia_smi {

/// One process of the report. On a split GPU it tells the instance.
struct ReportedProcess {
  Process process;
  Reading<unsigned> gpu_instance;
  Reading<unsigned> compute_instance;
};

struct ReportedInstance {
  MigPlacement placement;  ///< without the parent's UUID
  Memory memory;
};

/// One GPU in the output of `nvidia-smi -q -x`: what its other outputs do not have. Only there are
/// graphics processes listed, and processes with the MIG instance that they are on.
struct ReportedGpu {
  std::string uuid;
  Reading<bool> row_remap_pending;
  Reading<bool> row_remap_failed;
  Reading<std::vector<ReportedProcess>> processes;
  std::vector<ReportedInstance> instances;
};

std::vector<ReportedGpu> parse_report(std::string_view xml);

/// One MIG instance in the output of `nvidia-smi -L`, which alone has the UUIDs of instances.
struct ListedInstance {
  std::string parent_uuid;
  unsigned slot = 0;
  std::string profile;  ///< "1g.10gb"
  std::string uuid;
};

std::vector<ListedInstance> parse_list(std::string_view text);

}  // namespace berth::nvidia_smi
