#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "berth/core/conduct.h"
#include "berth/render/text.h"

namespace berth::render {

/// Whether a job keeps to its lease, as far as one look could tell.
struct JobConduct {
  const Ticket& lease;
  std::string name;  ///< of the lease, as tables show it
  const Snapshot& snapshot;
  const ConductReport& report;
  const std::set<std::uint32_t>& assumed;  ///< processes that count as its on the strength of their user
};

/// "it computes on GPU 3 (pid 4711), which it did not lease".
std::string conduct_sentence(const JobConduct& job);

/// "GPU 0,2": what the lease has on this machine.
std::string leased_in_words(const JobConduct& job);

/// Whose lease it is and how the job keeps to it, then a line a device: who is there, with how much memory.
std::string conduct_text(const JobConduct& job, const Style& style);

}  // namespace berth::render
