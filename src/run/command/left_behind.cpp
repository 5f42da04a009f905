#include "berth/command/left_behind.h"

#include <set>
#include <string_view>

#include "berth/source/probe/probe.h"
#include "berth/sys/process_identity.h"

namespace berth::leasing {
namespace {

// As podman starts it since 3.3 (catatonit), and before that or where catatonit is missing (podman
// itself).
constexpr std::string_view kPause = "catatonit -P";
constexpr std::string_view kPausedPodman = "podman pause";

std::vector<Holder> named(const std::vector<pid_t>& pids) {
  std::vector<Holder> holders;
  for (const pid_t pid : pids)
    holders.push_back({static_cast<std::uint32_t>(pid), sys::process_command(pid)});
  return holders;
}

// A probe that was forked has the command line of its program for a moment, and a probe of an older
// Berth has no name of its own.
bool is_probe(pid_t pid, const std::string& command) {
  return command.find(" __probe ") != std::string::npos || sys::process_name(pid) == source::kProbeName;
}

// Likewise.
bool is_receipt_keeper(pid_t pid, const std::string& command) {
  return command.ends_with(" __lease") || sys::process_name(pid) == kReceiptKeeperName;
}

}  // namespace

bool keeps_namespaces(pid_t pid) {
  return sys::process_command(pid) == kPause || sys::process_name(pid) == kPausedPodman;
}

bool serves_berth(pid_t pid) {
  const std::string command = sys::process_command(pid);
  return command.find(" __jobs /") != std::string::npos || command.find(" __job /") != std::string::npos ||
         command.find(" __notify") != std::string::npos ||
         command.find(" __sample --") != std::string::npos || is_receipt_keeper(pid, command) ||
         is_probe(pid, command);
}

std::vector<pid_t> left_below(pid_t holder) {
  if (sys::process_name(holder) != kLeftBehindName) return {};
  std::vector<pid_t> left = sys::pids_of(sys::ProcessTree().below(holder));
  std::erase_if(left, keeps_namespaces);
  return left;
}

std::map<TicketId, std::vector<Holder>> left_behind(store::LeaseStore& store, const Ledger& ledger) {
  std::map<TicketId, std::vector<pid_t>> found;
  std::map<sys::FileIdentity, TicketId> of_files;
  std::set<sys::FileIdentity> files;
  for (const Ticket& lease : ledger.tickets) {
    if (lease.phase != TicketPhase::granted || lease.kept) continue;
    if (sys::still_runs(lease.taker)) {
      found[lease.id] = left_below(static_cast<pid_t>(lease.taker.pid));
    } else if (const auto file = store.file_of(lease)) {
      of_files[*file] = lease.id;
      files.insert(*file);
    }
  }
  for (const auto& [file, pids] : sys::writers_of(files)) found[of_files[file]] = pids;
  std::map<TicketId, std::vector<Holder>> told;
  for (const auto& [lease, pids] : found) {
    if (!pids.empty()) told[lease] = named(pids);
  }
  return told;
}

}  // namespace berth::leasing
