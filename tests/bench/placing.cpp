// Replays jobs over a lab of equal hosts, once for each way to find a host: placement JOBS HOSTS
// DEVICES, where JOBS is a file as for `berth simulate`, and DEVICES those of each host. Prints how
// long the jobs wait, all and by size.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "berth/simulate/workload.h"
#include "placement.h"

namespace {

constexpr double kMinuteS = 60;

void print_row(const std::string& of, const berth::JobIndices& jobs, const berth::Workload& workload,
               const berth::Replay& replay) {
  const berth::WaitTimes waits = berth::waits_of(jobs, workload, replay);
  fmt::print("  {:>8} {:6} jobs, mean {:8.1f} min, 99 % {:8.1f} min\n", of, waits.jobs,
             waits.mean_s / kMinuteS, static_cast<double>(waits.p99_s) / kMinuteS);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t hosts = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const std::size_t devices = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 0;
  if (hosts == 0 || devices == 0) {
    fmt::print(stderr, "placement JOBS HOSTS DEVICES\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto workload = berth::workload_from_csv(text, argv[1], devices);
  if (!workload) {
    fmt::print(stderr, "{}\n", workload.error().message);
    return 1;
  }
  workload->devices = hosts * devices;
  for (const berth::Placement placement : berth::kPlacements) {
    const berth::Replay replay = berth::replay_placed(placement, *workload, hosts, {});
    fmt::print("{}: {:.0f} % in use, {:.0f} % idle while somebody waits\n", berth::to_text(placement),
               100 * used_share(*workload, replay), 100 * idle_share(*workload, replay));
    print_row("all", all_jobs(*workload), *workload, replay);
    for (const auto& [size, jobs] : jobs_by_size(*workload))
      print_row(fmt::format("{} GPUs", size), jobs, *workload, replay);
  }
  return 0;
}
