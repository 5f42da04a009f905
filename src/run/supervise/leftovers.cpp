#include "berth/supervise/leftovers.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "berth/command/left_behind.h"
#include "berth/command/release.h"
#include "berth/source/proc/process_details.h"
#include "berth/supervise/model/idle_span.h"
#include "berth/sys/job_process.h"

namespace berth::supervise {

using leased_run::Seen;

Leftovers::Leftovers() : others_(sys::unique_processes(sys::own_children())) {}

void Leftovers::leave_out(const std::set<UniqueProcess>& others) {
  others_.insert(others.begin(), others.end());
}

// Jobs that were submitted in this lease are ours only by descent: they have leases of their own.
std::vector<UniqueProcess> Leftovers::all() const {
  // An orphan becomes a child of this process. So if all our children are others, nothing is left
  // and no process of the machine has to be looked at: mostly a probe that is about to end.
  const auto is_other = [this](const UniqueProcess& process) { return others_.contains(process); };
  if (std::ranges::all_of(sys::own_children(), is_other, sys::unique_process)) return {};
  return sys::ProcessTree().below(::getpid(), [&](const UniqueProcess& process) {
    const auto pid = static_cast<pid_t>(process.pid);
    return is_other(process) || leasing::serves_berth(pid) || leasing::keeps_namespaces(pid);
  });
}

Seen Leftovers::look() {
  seen_.clear();
  if (!sys::JobProcess::collect_children().are_left) return Seen::nothing;
  seen_ = sys::pids_of(all());
  if (!seen_.empty()) return Seen::something;
  return sys::JobProcess::collect_children().have_ended ? Seen::perhaps_nothing : Seen::nothing;
}

Reading<bool> compute_on(command::Environment& environment, source::SourceKind kind,
                         const std::vector<pid_t>& pids, const std::vector<std::string>& uuids) {
  const bool are_pids_known = !source::in_nested_pid_namespace();
  auto source = environment.source(kind);
  const auto snapshot = source ? (*source)->read(are_pids_known ? ReadingKind::processes : kReadingsOfLoad)
                               : std::unexpected(source.error());
  environment.end_probe();
  if (!snapshot) return std::nullopt;
  return are_pids_known ? any_computes(*snapshot, uuids, {pids.begin(), pids.end()})
                        : any_computes(*snapshot, uuids);
}

std::string how_to_end(const std::vector<pid_t>& left, bool were_asked, const std::string& lease) {
  if (were_asked)
    return fmt::format("they got SIGTERM; to end them and the lease: {}", leasing::kill_line(left));
  return fmt::format("to end them and the lease: berth release {}", lease);
}

}  // namespace berth::supervise
