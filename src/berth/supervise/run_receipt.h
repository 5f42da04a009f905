#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "berth/history/model/receipt.h"
#include "berth/lease/acquire.h"
#include "berth/sys/job_process.h"

namespace berth::supervise {

/// How the command of a lease ended.
struct CommandEnd {
  std::chrono::milliseconds lasted{};
  sys::JobEnding how;
  bool was_asked = false;  ///< by somebody, or by the time of the lease
};

/// Reads the machine. nullopt: it does not answer.
using ReadMachine = std::function<std::optional<Snapshot>()>;

/// What the lease had and used, until now. Asks the machine only if the command has lasted so long that the
/// question is a small part of it, and only for what the card of a whole device can tell.
Receipt receipt_of(const leasing::HeldLease& lease, const CommandEnd& end, const ReadMachine& read);

/// Keeps a receipt: a line in the user's record of runs, and a file if BERTH_RECEIPT names one. A home may
/// not answer: what is not written after a second is lost. A sentence for the user: the file could not be
/// written.
/// "": nothing to tell.
std::string keep_receipt(const Receipt& receipt);

}  // namespace berth::supervise
