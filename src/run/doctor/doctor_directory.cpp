#include "berth/doctor/doctor_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/lease/original_locks.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"
#include "berth/site/site_file.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/file.h"

namespace berth::doctor {
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
  const auto tickets = store::tickets_in(directory);
  if (!tickets) {
    findings.push_back({view::Level::fail, "tickets", tickets.error().message, ""});
    return;
  }
  const OddListed listed = listed_odd(*tickets);
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
  const auto shut = store::shut_gate(directory, kGatePatience);
  if (shut) findings.push_back({view::Level::fail, kCheck, shut->fault, shut->remedy});
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
    const auto live = store::tickets_in(**other);
    if (sys::identity_of(here) == sys::identity_of(there) || !live || live->tickets.empty()) continue;
    findings.push_back({view::Level::warn, "other lease directories",
                        fmt::format("{} has {} live tickets, which those who use {} do not see", path,
                                    live->tickets.size(), directory.choice.path),
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

namespace {

// The kernel gives the namespaces that the machine starts with fixed numbers (PROC_PID_INIT_INO).
constexpr std::string_view kMachinesPids = "pid:[4026531836]";

bool has_the_machines_pids() {
  std::array<char, 64> name{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", name.data(), name.size());
  return size < 0 || std::string_view(name.data(), static_cast<std::size_t>(size)) == kMachinesPids;
}

/// The first process runs as root, and anybody may read of it what hidepid does not hide.
bool sees_others_processes() {
  return static_cast<bool>(sys::Descriptor(::open("/proc/1/stat", O_RDONLY | O_CLOEXEC)));
}

/// As systemd, Docker and Podman tell what they start.
bool is_in_container() {
  const char* told = std::getenv("container");
  return (told != nullptr && *told != '\0') || ::access("/.dockerenv", F_OK) == 0 ||
         ::access("/run/.containerenv", F_OK) == 0;
}

}  // namespace

std::vector<std::string> blind_spots(const store::DirectoryChoice& choice) {
  std::vector<std::string> spots;
  for (const Finding& each : examine_view(choice))
    spots.push_back(fmt::format("{}; {}", each.found, each.remedy));
  if (choice.origin == store::DirectoryOrigin::fallback && is_in_container())
    spots.push_back(
        fmt::format("this container has no {0}, so no lease of the machine is seen; start it "
                    "with --volume {0}:{0}",
                    store::kSiteDirectory));
  if (!has_the_machines_pids()) {
    spots.emplace_back(
        "this container numbers its processes itself, so it cannot see the machine's processes; start it "
        "with --pid=host");
  } else if (!sees_others_processes()) {
    spots.emplace_back(
        "/proc hides the processes of other users (hidepid), so whose they are is not seen; add this user to "
        "the group that mount shows as gid=");
  }
  return spots;
}

namespace {

using view::Finding;
using Findings = std::vector<Finding>;

/// A limit of somebody whom the machine does not know holds for nobody, and nobody notices.
void check_names(const Allowances& limits, Findings& findings) {
  const auto warn = [&](std::string_view what, const std::string& name) {
    findings.push_back(
        {view::Level::warn, "site file",
         fmt::format("[limits.{0}s] names {1}, and this machine knows no such {0}", what, name),
         "that limit holds for nobody: check the spelling"});
  };
  for (const auto& [user, allowance] : limits.of_users) {
    if (!sys::is_user(user)) warn("user", user);
  }
  for (const auto& [group, allowance] : limits.of_groups) {
    if (!sys::is_group(group)) warn("group", group);
  }
}

/// Devices that nobody gets, and a selector that is misspelt, or that is of a card that was taken
/// out.
void check_excluded(const SitePolicy& policy, const Snapshot& snapshot, Findings& findings) {
  for (const ExcludedDevice& each : policy.excluded) {
    const auto named = devices_named(each.selector, snapshot);
    for (const std::size_t position : named) {
      const Device& device = snapshot.devices[position];
      findings.push_back({view::Level::pass, "GPU " + label(device),
                          fmt::format("excluded by the site{}{}: nobody gets it, until the rule is taken out "
                                      "of the site file, or root says `berth include {}`",
                                      each.reason.empty() ? "" : ": ", each.reason, label(device)),
                          ""});
    }
    if (!named.empty()) continue;
    findings.push_back(
        {view::Level::warn, "site file",
         fmt::format("[[excluded]] names device {}, and this machine has no such GPU", each.selector),
         "that rule excludes nothing: `berth list` shows the index of each GPU"});
  }
}

/// An index means another card once a card before it is gone, and nobody would notice.
void check_index(std::string_view key, std::string_view selector, std::string_view before,
                 const Snapshot& snapshot, Findings& findings) {
  const std::string uuid = as_uuids({std::string(selector)}, snapshot).front();
  if (uuid == selector) return;
  findings.push_back(
      {view::Level::warn, "site file",
       fmt::format("{} names GPU {} by its index, which means another GPU once a card has gone", key,
                   selector),
       fmt::format("check that it is the GPU that you mean, and write {}\"{}\" in its place", before, uuid)});
}

void check_indices(const SitePolicy& policy, const Snapshot& snapshot, Findings& findings) {
  for (const ExcludedDevice& each : policy.excluded)
    check_index("[[excluded]]", each.selector, "device = ", snapshot, findings);
  for (const std::string& each : policy.trust_leases)
    check_index("trust_leases", each, "", snapshot, findings);
}

/// A lock that keeps nobody away.
void check_original_locks(const SitePolicy& policy, const Snapshot& snapshot, Findings& findings) {
  for (const OriginalLock& row : policy.original_locks) {
    if (!row.user.empty() && !sys::is_user(row.user))
      findings.push_back(
          {view::Level::warn, "site file",
           fmt::format("[[foreign_locks]] names user {}, and this machine knows no such user", row.user),
           "files of that user count for nobody: check the spelling"});
  }
  for (const leasing::OddLockFile& odd : leasing::odd_lock_files(policy.original_locks, snapshot))
    findings.push_back({view::Level::warn, "foreign locks", odd.what, odd.remedy});
}

std::string order_in_words(const QueueRules& rules) {
  if (!rules.orders_by_more_than_coming()) return "first come, first served";
  std::string words = rule_in_words(rules.order);
  if (rules.expect == Expect::none) return words;
  if (!words.empty()) words += "; of a user's own requests, ";
  return words + fmt::format("short requests wait less (expect = \"{}\")", to_text(rules.expect));
}

Finding order_of_the_queue(SitePolicy policy, const std::string& lease_directory) {
  constexpr const char* kOrder = "order of the queue";
  store::apply_order_of_machine(policy, lease_directory);
  const std::string words = order_in_words(policy.queue);
  if (policy.says_expect) return {view::Level::pass, kOrder, words + ", as the site file says", ""};
  const store::MachineOrder machine = store::order_of_machine(lease_directory);
  if (machine.expect)
    return {view::Level::pass, kOrder, words + ", as `berth init` has set it on this machine", ""};
  if (machine.fault.empty())
    return {view::Level::pass, kOrder, words + "; `sudo berth init` lets short requests wait less", ""};
  return {view::Level::warn, kOrder, fmt::format("{}, since {}", words, machine.fault),
          "sudo berth init writes it anew"};
}

}  // namespace

std::vector<Finding> examine_site_files(const Snapshot* snapshot, const std::string& lease_directory) {
  Findings findings;
  const auto files = site::read_site_files();
  if (!files) {
    findings.push_back(
        {view::Level::fail, "site file", files.error().message, "nothing is granted until it is corrected"});
    return findings;
  }
  for (const std::string& key : files->policy.not_understood)
    findings.push_back({view::Level::fail, "site file", key, "nothing is granted until it is corrected"});
  if (!files->policy.not_understood.empty()) return findings;
  findings.push_back({view::Level::pass, "site file",
                      fmt::format("{}: {}",
                                  files->read.empty() ? "none, so the defaults hold"
                                                      : fmt::format("{}", fmt::join(files->read, " and ")),
                                  site::policy_in_words(files->policy)),
                      ""});
  findings.push_back(order_of_the_queue(files->policy, lease_directory));
  check_names(files->policy.limits.always, findings);
  for (const HourlyAllowances& each : files->policy.limits.hours) check_names(each.limits, findings);
  if (snapshot != nullptr) check_excluded(files->policy, *snapshot, findings);
  if (snapshot != nullptr) check_indices(files->policy, *snapshot, findings);
  if (snapshot != nullptr) check_original_locks(files->policy, *snapshot, findings);
  return findings;
}

}  // namespace berth::doctor
