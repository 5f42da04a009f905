#include "berth/lease/probe_options.h"

#include <chrono>
#include <cstdlib>

#include "berth/base/record.h"
#include "berth/store/lease_directory.h"

namespace berth::leasing {

source::ProbeOptions probe_options() {
  source::ProbeOptions options;
  options.state_directory = store::choose_lease_directory().path;
  const char* deadline = std::getenv("BERTH_DRIVER_DEADLINE_MS");
  if (const auto ms = number_from_text<unsigned>(deadline != nullptr ? deadline : "")) {
    options.progress_deadline = std::chrono::milliseconds(*ms);
    options.topology_deadline = std::chrono::milliseconds(*ms);
  }
  return options;
}

}  // namespace berth::leasing
