#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"
#include "berth/verdict/site_policy.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"

namespace berth::view {

enum class Level { pass, warn, fail };
constexpr auto words_of(Level) {
  return std::to_array<std::string_view>({"pass", "warn", "fail"});
}

/// The result of a check of `berth doctor`.
struct Finding {
  Level level = Level::pass;
  std::string check;   ///< what was looked at: "lease directory"
  std::string found;   ///< one sentence
  std::string remedy;  ///< what to do about it; "": nothing
};

/// A line a finding, its remedy below it, and a summary. `what_is`: not to be relied on where one
/// fails, with its verb: "leases or readings are".
std::string doctor_report(const std::vector<Finding>& findings, std::string_view what_is, const Style& style);

/// The vendors of these devices, each once.
std::vector<Vendor> vendors_in(const Snapshot& snapshot);
/// That of the first device; where there is none, the first of all.
Vendor vendor_of_first(const Snapshot& snapshot);

/// What `berth doctor` finds in what the driver tells of the devices, by themselves and all
/// together. Pure. `masks`: the variables of the process that asks.
std::vector<Finding> device_findings(const Snapshot& snapshot, const SitePolicy& policy,
                                     const MaskVariables& masks);

/// Whether a job uses only the devices of its lease, as far as one look could tell.
struct JobCompliance {
  const Ticket& lease;
  std::string name;  ///< of the lease, as tables show it
  const Snapshot& snapshot;
  const ComplianceReport& report;
  const std::set<std::uint32_t>& assumed;  ///< processes that count as the lease's only because of their user
};

/// "it computes on GPU 3 (pid 4711), which it did not lease".
std::string compliance_sentence(const JobCompliance& job);

/// "it uses 30 GiB on GPU 0, and its share is 2 GiB: …".
std::string overrun_sentence(const Overrun& overrun, const Ticket& lease);

/// "GPU 0,2": the devices of the lease on this machine.
std::string leased_in_words(const JobCompliance& job);

/// One line with the owner of the lease and whether the job keeps to it. Then a line for each
/// device: which processes are there, with how much memory.
std::string compliance_text(const JobCompliance& job, const Style& style);

}  // namespace berth::view
