#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "berth/verdict/compliance.h"
#include "berth/view/text.h"

namespace berth::view {

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
