#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "berth/history/history.h"
#include "berth/usage/past_leases.h"

namespace berth::serve {

/// What the history knows of the last hours, asked for again and again. A look never waits for the
/// disk: it gets what was told last.
class PastOfTimeline : public std::enable_shared_from_this<PastOfTimeline> {
 public:
  /// Asks, if the last answer is old.
  void renew(history::History& history, std::int64_t now_s);
  /// null: nothing is known, or no history is kept.
  std::shared_ptr<const RecordedLeases> told() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const RecordedLeases> told_;
  std::int64_t asked_s_ = 0;  // of the thread that looks alone
};

}  // namespace berth::serve
