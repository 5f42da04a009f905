#pragma once

#include <future>
#include <string>
#include <vector>

#include "berth/verdict/queue_rules.h"

namespace berth::leasing {

/// For how long this user's earlier runs lasted that say most of a command (history/model/receipt.h), as
/// `expectation_of` takes it. A home may not answer, so a thread reads the record, while the driver is asked.
class EarlierRunsReading {
 public:
  /// Begins to read.
  explicit EarlierRunsReading(const std::string& command);

  /// What was read; nothing if that takes longer than a second. To be called once.
  std::vector<Moment> lasted_s();

 private:
  std::future<std::vector<Moment>> told_;
};

}  // namespace berth::leasing
