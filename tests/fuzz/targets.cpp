#include "targets.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace berth::fuzz {

std::span<const Target> targets() {
  static constexpr std::array<Target, 13> kTargets{{{"http", read_http},
                                                    {"hosts", read_hosts_document},
                                                    {"usage", read_usage_document},
                                                    {"ticket", read_ticket},
                                                    {"snapshot", read_snapshot},
                                                    {"expression", read_expression},
                                                    {"site-file", read_site_file},
                                                    {"agents-file", read_agents_file},
                                                    {"job", read_job},
                                                    {"script", read_script},
                                                    {"workload", read_workload},
                                                    {"nvidia-smi", read_nvidia_smi},
                                                    {"nvml", read_nvml}}};
  return kTargets;
}

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace berth::fuzz
