#include "berth/doctor/doctor_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "berth/queue/listing_bounds.h"
#include "berth/store/device_locks.h"
#include "berth/store/directory_scan.h"
#include "berth/store/directory_ticket.h"
#include "berth/store/private_tmp.h"
#include "berth/sys/file.h"

namespace berth::leasing {
namespace {

constexpr const char* kCheck = "lease directory";
constexpr std::uint64_t kFewBytes = 256 * 1024;
constexpr std::uint64_t kFewFiles = 64;
// Others are in the gate for milliseconds.
constexpr std::chrono::seconds kGatePatience{1};
constexpr const char* kInit = "sudo berth init makes /run/berth, which everybody then uses";

std::string_view reason_of(store::DirectoryOrigin origin) {
  switch (origin) {
    case store::DirectoryOrigin::environment:
      return "BERTH_DIR names it";
    case store::DirectoryOrigin::site:
      return "made by an administrator";
    case store::DirectoryOrigin::fallback:
      return "the default where there is no /run/berth";
    case store::DirectoryOrigin::lease:
      break;
  }
  return "inside a lease";
}

void check_room(const store::LeaseDirectory& directory, std::vector<Finding>& findings) {
  struct statvfs room{};
  if (::fstatvfs(directory.queue.get(), &room) != 0) return;
  if ((room.f_flag & ST_RDONLY) != 0) {
    findings.push_back(
        {view::Level::fail, kCheck, directory.choice.path + " is on a read-only file system", kInit});
    return;
  }
  // A file system without a limit on files says 0 of 0.
  const bool few_files = room.f_files > 0 && room.f_favail < kFewFiles;
  if (room.f_bavail * room.f_frsize >= kFewBytes && !few_files) return;
  findings.push_back({view::Level::fail, kCheck,
                      directory.choice.path + " is full, so nobody can join the queue",
                      "most of the files there are of " + store::biggest_owner(directory)});
}

void check_use(const store::LeaseDirectory& directory, std::vector<Finding>& findings) {
  const auto file = sys::make_unnamed(directory.queue.get(), 0600);
  if (!file)
    findings.push_back(
        {view::Level::fail, kCheck, directory.choice.path + ": " + file.error().message, kInit});
}

// Of the devices that there are: what else somebody has put there keeps nobody from a lease.
void check_device_files(const store::LeaseDirectory& directory, const std::vector<std::string>& uuids,
                        std::vector<Finding>& findings) {
  struct stat root{};
  if (::fstat(directory.root.get(), &root) != 0 || root.st_uid != 0) return;
  std::set<std::string> owners;
  for (const std::string& uuid : uuids) {
    struct stat status{};
    const std::string name = store::device_file_name(uuid);
    if (::fstatat(directory.devices.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_uid != 0)
      owners.insert(sys::user_name(status.st_uid));
  }
  for (const std::string& owner : owners) {
    findings.push_back({view::Level::warn, "device files",
                        fmt::format("{} owns some and could remove them while they are leased", owner),
                        "sudo berth init makes them root's"});
  }
}

void check_tickets(const store::LeaseDirectory& directory, std::vector<Finding>& findings) {
  const auto scan = store::scan_directory(directory);
  if (!scan) {
    findings.push_back({view::Level::fail, "tickets", scan.error().message, ""});
    return;
  }
  const OddListed listed = listed_odd(scan->ledger);
  for (const OddTicket& odd : listed.odd) {
    findings.push_back(
        {view::Level::warn, "tickets",
         fmt::format("{} of {} is not understood: {}", odd.name, sys::user_name(odd.uid), odd.reason),
         "its owner or root can remove it when nothing holds it"});
  }
  for (const auto& [uid, count] : listed.rest)
    findings.push_back({view::Level::warn, "tickets",
                        fmt::format("{} more of {} are not understood", count, sys::user_name(uid)),
                        "their owner or root can remove them when nothing holds them"});
}

// Then the queue may have a second name of the live ticket of somebody else.
void check_links(std::vector<Finding>& findings) {
  const auto protects = sys::read_whole("/proc/sys/fs/protected_hardlinks");
  if (!protects || !protects->starts_with('0')) return;
  findings.push_back({view::Level::warn, "links",
                      "fs.protected_hardlinks is 0: each user can give the tickets of others second names, "
                      "and so stop programs of the standard",
                      "sudo sysctl -w fs.protected_hardlinks=1"});
}

// A process in the gate keeps all others from starting, and is never put out of it.
void check_gate(const store::LeaseDirectory& directory, std::vector<Finding>& findings) {
  const auto gate = store::enter_gate(directory, kGatePatience, nullptr);
  if (gate) return;
  findings.push_back({view::Level::fail, kCheck, gate.error().error.message,
                      gate.error().remedy ? gate.error().remedy() : std::string()});
}

// Leases where others look for them are leases that we do not see.
void check_elsewhere(const store::LeaseDirectory& directory, std::vector<Finding>& findings) {
  for (const char* path : {store::kSiteDirectory, store::kFallbackDirectory}) {
    const auto other = store::LeaseDirectory::open({path, store::DirectoryOrigin::environment});
    if (!other || !*other) continue;
    struct stat here{};
    struct stat there{};
    ::fstat(directory.root.get(), &here);
    ::fstat((*other)->root.get(), &there);
    const auto scan = store::scan_directory(**other);
    if (sys::identity_of(here) == sys::identity_of(there) || !scan || scan->ledger.tickets.empty()) continue;
    findings.push_back({view::Level::warn, "other lease directories",
                        fmt::format("{} has {} live tickets, which those who use {} do not see", path,
                                    scan->ledger.tickets.size(), directory.choice.path),
                        "let all use one: unset BERTH_DIR, and let those jobs end"});
  }
}

void check_private_tmp(const store::DirectoryChoice& choice, std::vector<Finding>& findings) {
  const auto mounted = store::mounted_on_private_tmp(choice);
  if (!mounted) return;
  const bool is_refused = choice.origin == store::DirectoryOrigin::fallback;
  findings.push_back({is_refused ? view::Level::fail : view::Level::warn, "private /tmp",
                      fmt::format("{} is mounted on /tmp here, so others do not see leases made here{}",
                                  *mounted, is_refused ? ": nothing is leased" : ""),
                      kInit});
}

}  // namespace

std::vector<Finding> examine_lease_directory(const store::DirectoryChoice& choice,
                                             const std::vector<std::string>& uuids) {
  std::vector<Finding> findings;
  const auto directory = store::LeaseDirectory::open(choice);
  if (!directory) {
    findings.push_back({view::Level::fail, kCheck, directory.error().message, kInit});
  } else if (!*directory) {
    findings.push_back({view::Level::pass, kCheck,
                        fmt::format("{} ({}) does not exist yet; the first lease makes it", choice.path,
                                    reason_of(choice.origin)),
                        ""});
  } else {
    for (const std::string& note : (*directory)->notes)
      findings.push_back({view::Level::warn, kCheck, note, kInit});
    check_room(**directory, findings);
    check_use(**directory, findings);
    check_gate(**directory, findings);
    check_device_files(**directory, uuids, findings);
    check_tickets(**directory, findings);
    check_links(findings);
    check_elsewhere(**directory, findings);
    if (findings.empty())
      findings.push_back(
          {view::Level::pass, kCheck, fmt::format("{} ({})", choice.path, reason_of(choice.origin)), ""});
  }
  check_private_tmp(choice, findings);
  return findings;
}

std::vector<Finding> examine_view(const store::DirectoryChoice& choice) {
  std::vector<Finding> findings;
  const auto directory = store::LeaseDirectory::open(choice);
  if (directory && *directory) check_elsewhere(**directory, findings);
  check_private_tmp(choice, findings);
  return findings;
}

}  // namespace berth::leasing
