#include "berth/doctor/doctor_site.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/lease/original_locks.h"
#include "berth/request/selector.h"
#include "berth/site/site_file.h"
#include "berth/site/site_keys.h"
#include "berth/sys/file.h"

namespace berth::leasing {
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
  for (const OddLockFile& odd : odd_lock_files(policy.original_locks, snapshot))
    findings.push_back({view::Level::warn, "foreign locks", odd.what, odd.remedy});
}

}  // namespace

std::vector<Finding> examine_site_files(const Snapshot* snapshot) {
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
  check_names(files->policy.limits.always, findings);
  for (const HourlyAllowances& each : files->policy.limits.hours) check_names(each.limits, findings);
  if (snapshot != nullptr) check_excluded(files->policy, *snapshot, findings);
  if (snapshot != nullptr) check_indices(files->policy, *snapshot, findings);
  if (snapshot != nullptr) check_original_locks(files->policy, *snapshot, findings);
  return findings;
}

}  // namespace berth::leasing
