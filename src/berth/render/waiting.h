#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "berth/core/ledger.h"
#include "berth/core/verdict.h"
#include "berth/render/text.h"

namespace berth::render {

/// How things stand with a request that waits.
struct Queueing {
  const Snapshot& snapshot;
  const std::vector<Verdict>& verdicts;
  std::size_t position;  ///< 1: first of its rivals
  const Ticket* behind;  ///< the one before it; null for the first
};

/// "1 of 4 free; GPU 3 leased alice 2 h, GPU 5 draining", without the devices that are out of the question.
std::string what_is_missing(const std::vector<Verdict>& verdicts, const Snapshot& snapshot,
                            const Style& style);

/// One line: "first in line for 5 min; 1 of 4 free; GPU 3 leased alice 2 h, GPU 5 draining", or
/// "no. 3 in line for 5 min, behind bob (train.py)".
std::string waiting_line(const Queueing& queueing, std::chrono::seconds waited, const Style& style);

}  // namespace berth::render
