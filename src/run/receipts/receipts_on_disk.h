#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "berth/usage/receipt.h"

// A user's record of runs: a file a machine, in a folder of the user's own state that nobody else
// may read or write. A home may serve several machines; each writes its own file, and all are read.
// Nothing depends on the record: what cannot be written or read is missing, and nothing fails.
namespace berth::leasing {

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

}  // namespace berth::leasing
