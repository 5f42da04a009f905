#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/request/request.h"
#include "berth/verdict/queue_rules.h"

namespace berth::leasing {

/// For how long this user's earlier runs lasted that say most of a command
/// (usage/receipt.h), as `expectation_of` takes it. A home may not answer, so a thread
/// reads the record, while the driver is asked.
///
/// As TicketWords::earlier_runs: the first call begins to read, and the second, which is made once,
/// gives what was read; nothing if that takes longer than a second.
std::function<std::function<std::vector<Moment>()>()> earlier_runs_of(const std::string& command);

/// A request in which `--memory auto` is settled.
struct SettledMemory {
  Request request;
  std::string told{};  ///< a sentence for the user; "": there was nothing to settle
};

/// By this user's record of runs of the command (usage/memory_by_runs.h). A home that does
/// not answer within a second has no runs.
SettledMemory settle_memory(Request request, const std::string& command);

}  // namespace berth::leasing
