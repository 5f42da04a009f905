#include "berth/supervise/leftovers.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "berth/lease/left_behind.h"
#include "berth/lease/release.h"
#include "berth/source/proc/process_details.h"
#include "berth/supervise/model/idle_span.h"
#include "berth/sys/job_process.h"

namespace berth::supervise {

using leased_run::Seen;

Leftovers::Leftovers() : others_(sys::unique_processes(sys::own_children())) {}

void Leftovers::leave_out(const std::set<sys::UniqueProcess>& others) {
  others_.insert(others.begin(), others.end());
}

// Jobs that were submitted in this lease are ours only by descent: they have leases of their own.
std::vector<pid_t> Leftovers::all() const {
  // An orphan becomes a child of this process. So if all our children are others, nothing is left
  // and no process of the machine has to be looked at: mostly a probe that is about to end.
  const std::vector<pid_t> children = sys::own_children();
  std::vector<pid_t> others;
  for (const auto& [pid, start] : others_) {
    // The pid of one that has ended may be that of a process of the job by now.
    if (const auto stat = sys::process_stat(pid); stat && stat->start_ticks == start) others.push_back(pid);
  }
  const auto is_other = [&](pid_t pid) { return std::ranges::find(others, pid) != others.end(); };
  if (std::ranges::all_of(children, is_other)) return {};
  std::vector<pid_t> left = sys::process_descendants(::getpid());
  std::ranges::copy_if(left, std::back_inserter(others), [](pid_t pid) {
    return leasing::serves_berth(pid) || leasing::keeps_namespaces(pid);
  });
  for (const pid_t other : others) {
    const std::vector<pid_t> below = sys::process_descendants(other);
    std::erase_if(left,
                  [&](pid_t pid) { return pid == other || std::ranges::find(below, pid) != below.end(); });
  }
  return left;
}

Seen Leftovers::look() {
  seen_.clear();
  if (!sys::JobProcess::collect_children().are_left) return Seen::nothing;
  seen_ = all();
  if (!seen_.empty()) return Seen::something;
  return sys::JobProcess::collect_children().have_ended ? Seen::perhaps_nothing : Seen::nothing;
}

bool compute_on(command::Environment& environment, source::SourceKind kind, const std::vector<pid_t>& pids,
                const std::vector<std::string>& uuids) {
  const bool are_pids_known = !source::in_nested_pid_namespace();
  ReadingSet readings = ReadingKind::processes;
  if (!are_pids_known) readings |= ReadingKind::utilization;
  auto source = environment.source(kind);
  const auto snapshot = source ? (*source)->read(readings) : std::unexpected(source.error());
  environment.end_probe();
  if (!snapshot) return true;
  if (!are_pids_known && may_compute(*snapshot, uuids)) return true;
  return std::ranges::any_of(uuids, [&](const std::string& uuid) {
    const Device* device = find_device(*snapshot, uuid);
    if (device == nullptr || !device->processes) return true;
    return std::ranges::any_of(*device->processes, [&](const Process& process) {
      return std::ranges::find(pids, static_cast<pid_t>(process.pid)) != pids.end();
    });
  });
}

std::string how_to_end(const std::vector<pid_t>& left, bool were_asked, const std::string& lease) {
  if (were_asked)
    return fmt::format("they got SIGTERM; to end them and the lease: {}", leasing::kill_line(left));
  return fmt::format("to end them and the lease: berth release {}", lease);
}

}  // namespace berth::supervise
