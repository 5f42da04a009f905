#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/job/run_end.h"
#include "berth/source/source.h"
#include "berth/sys/detached_answer.h"
#include "berth/usage/receipt.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/outcomes.h"

namespace berth::receipts {

/// Reads the machine. nullopt: it does not answer.
using ReadMachine = std::function<std::optional<Snapshot>()>;

/// Reads what a receipt needs. A driver that hangs holds nobody up: what it has not said after two
/// seconds is not known.
ReadMachine read_at_end(source::SourceKind source);

/// Whether the driver is asked at the end of what lasted so long: else the question would take a
/// good part of the time.
bool is_worth_asking(std::chrono::milliseconds lasted);

/// What is known of a run when its lease is granted. `devices`: of the lease, as they were then.
Receipt receipt_at_grant(const Ticket& ticket, const std::vector<const Device*>& devices);

/// Adds what the lease had and used, until now. Asks the machine only if is_worth_asking, and only
/// if the cards have told their energy at its start (`at_start`, energy_at_start.h). To be called
/// while the lease is held: the counter of the card goes on for whoever gets it next.
void end_receipt(Receipt& receipt, const RunEnd& end, const std::optional<RunSamples>& samples,
                 const ReadMachine& at_start, const ReadMachine& read);

/// Both together.
Receipt receipt_of(const Ticket& ticket, const std::vector<const Device*>& devices, const RunEnd& end,
                   const std::optional<RunSamples>& samples, const ReadMachine& at_start,
                   const ReadMachine& read);

/// The file that BERTH_RECEIPT names; "": none.
std::string named_receipt_file();

/// Keeps a receipt: a line in the user's record of runs, and this file, if it is not "". A thread
/// writes them, while the lease ends.
class ReceiptKeeping {
 public:
  /// Begins to write.
  ReceiptKeeping(const Receipt& receipt, const std::string& file);

  /// Waits until all is written. A home may not answer: what is not written after a second is lost.
  /// A sentence for the user: the file could not be written. "": nothing to tell.
  std::string trouble();

 private:
  sys::DetachedAnswer<std::string> told_;
  std::optional<std::string> trouble_;
};

}  // namespace berth::receipts
