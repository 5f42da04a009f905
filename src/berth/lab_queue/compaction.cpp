#include "berth/lab_queue/compaction.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

/// If a watch was cut off for no longer than this, it goes on where it was. Otherwise all keys are
/// read again.
constexpr auto kKeptHistory = 1h;
constexpr auto kApart = 5min;

}  // namespace

void Compaction::is_at(std::uint64_t revision, Instant now) {
  // It was wiped, or is another one.
  if (!heard_.empty() && revision < heard_.back().revision) heard_.clear();
  if (heard_.empty() || now >= heard_.back().when + kApart) heard_.push_back({now, revision});
}

std::optional<std::uint64_t> Compaction::due(Instant now) {
  // Twice as long ago: it has been an hour since the last time, too.
  if (heard_.empty() || now < heard_.front().when + 2 * kKeptHistory) return std::nullopt;
  std::uint64_t revision = 0;
  while (!heard_.empty() && now >= heard_.front().when + kKeptHistory) {
    revision = heard_.front().revision;
    heard_.pop_front();
  }
  return revision;
}

}  // namespace berth::lab_queue
