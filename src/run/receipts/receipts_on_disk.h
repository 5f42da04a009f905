#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/request/request.h"
#include "berth/usage/receipt.h"
#include "berth/verdict/ledger.h"

// A user's record of runs: a file a machine, in a folder of the user's own state that nobody else
// may read or write. A home may serve several machines; each writes its own file, and all are read.
// Nothing depends on the record: what cannot be written or read is missing, and nothing fails.
namespace berth::receipts {

/// The folder of the record. nullopt: this user has no home.
std::optional<std::string> receipt_folder();

/// Adds a line to this machine's file, and makes the file if it is missing. A file that has grown
/// to 256 KiB loses the older half of its lines. False: it cannot be written. Takes as long as the
/// disk does.
bool note_receipt(const std::string& folder, const Receipt& receipt);

/// All that are there, the oldest first.
std::vector<Receipt> read_receipts(const std::string& folder);
/// Those of this machine alone.
std::vector<Receipt> receipts_of_this_machine(const std::string& folder);

/// Removes those of this program, or all where it is "", of all machines. How many they were.
/// Error: `failure`: one of the files cannot be changed.
Result<std::size_t> forget_receipts(const std::string& folder, const std::string& program);

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

/// By this user's record of runs of the command (usage/receipt.h). A home that does
/// not answer within a second has no runs.
SettledMemory settle_memory(Request request, const std::string& command);

}  // namespace berth::receipts
