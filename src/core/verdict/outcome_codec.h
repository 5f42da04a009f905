#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/verdict/outcomes.h"

namespace berth {

/// The text of a user's file of outcomes: a first line with the boot that it is of, and one line an
/// outcome.
///
///     berth-outcomes 1 9f1c2d34-…
///     3f9a11c0d2e4b871 2520417 184 badly GPU-8a1c…,GPU-f0b7…;
///
/// fingerprint, begin and length in milliseconds, ending, devices. What is no such line is skipped:
/// a file that was cut off or written over by anything else loses those lines only.

/// A longer file is written anew before more is added to it, and nothing is read of what is behind.
inline constexpr std::size_t kMostOutcomeBytes = 16UL << 10U;

std::string encode_outcome(const PastRun& outcome);

/// Whether more lines of this boot can be added to the text.
bool is_of_boot(std::string_view text, std::string_view boot);

/// Of another boot or version there are none.
std::vector<PastRun> decode_outcomes(std::string_view text, std::string_view boot);

/// A text with the newest of these outcomes, so many that there is room for more.
std::string encode_outcomes(const std::vector<PastRun>& outcomes, std::string_view boot);

/// Whether a file with this text can say anything about a device: so many of its runs ended badly,
/// or somebody has included a device. Cheap, since most files cannot.
bool may_blame(std::string_view text, std::size_t bad_runs);

}  // namespace berth
