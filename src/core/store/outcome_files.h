#pragma once

#include <vector>

#include "berth/store/lease_directory.h"
#include "berth/verdict/ledger.h"

namespace berth::store {

// The folder "outcomes" of a lease directory, in which each user has one small file: what became of
// this user's runs. A hint and no more: where the folder is missing, or another user's, or full,
// nothing is remembered, and nothing fails.

/// What the files say. Of files that cannot say anything (may_blame) nothing; if the folder is
/// crowded, at least what this user's file says.
std::vector<UserRuns> read_outcomes(const LeaseDirectory& directory);

/// Adds a line to the file of this user. False: it cannot be written.
bool note_outcome(const LeaseDirectory& directory, const PastRun& run);

}  // namespace berth::store
