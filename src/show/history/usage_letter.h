#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/base/error.h"
#include "berth/machines/host.h"
#include "berth/usage/usage.h"
#include "berth/view/text.h"

namespace berth::history {

/// What a letter about a machine is made from: all of the same span of time, but `now`.
struct LetterFacts {
  std::string host{};                       ///< "": not known
  Usage usage{};                            ///< by user
  Result<RecordedLeases> leases{};          ///< error: why they are not told
  std::vector<DeviceHistory> devices{};     ///< one for each device that was seen
  std::shared_ptr<const HostReport> now{};  ///< as the machine is now; null: nobody was asked
};

/// A page of plain text for a mail: how much was leased and idle, by whom, how long requests
/// waited, how much memory leased GPUs used, and which are sick. Shares are of the time in which
/// somebody looked, and are not told of less than an hour. Of `style` only the clock counts.
std::string usage_letter(const LetterFacts& facts, const view::Style& style);

}  // namespace berth::history
