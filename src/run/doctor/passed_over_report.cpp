#include "berth/doctor/passed_over_report.h"

#include <fmt/format.h>

#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::leasing {

std::vector<view::Finding> examine_passed_over(const Snapshot& snapshot) {
  std::vector<view::Finding> findings;
  const auto domain = find_domain({});
  if (!domain) return findings;
  const auto books = domain->store->look(store::Extent::leases);
  if (!books) return findings;
  const auto told =
      told_passed_over(domain->store->outcomes(), books->ledger, snapshot, sys::milliseconds_since_boot());
  for (const Device& device : snapshot.devices) {
    const auto found = told.find(device.uuid);
    if (found == told.end()) continue;
    for (const PassedOverFor& each : found->second)
      findings.push_back(
          {view::Level::warn, "GPU " + label(device),
           fmt::format("passed over until {} for {}: {}", sys::wall_text(each.until_s), each.user,
                       each.reason),
           fmt::format(
               "`sudo dmesg | grep -i nvrm` may say what is wrong with it; `berth include {}` by this "
               "user, or by root, lets the jobs have it again",
               label(device))});
  }
  return findings;
}

}  // namespace berth::leasing
