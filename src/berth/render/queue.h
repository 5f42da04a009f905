#pragma once

#include <string>
#include <vector>

#include "berth/core/host.h"
#include "berth/core/waiters.h"
#include "berth/render/text.h"

namespace berth::render {

/// Who waits, and on which machine.
struct Queue {
  const Snapshot& snapshot;
  const std::vector<Waiter>& waiters;
  const Ledger& ledger;
};

/// Why it waits: "1 of 4 free; GPU 3 leased alice 2 h", "behind bob (train.py)".
std::string reason(const Waiter& waiter, const Snapshot& snapshot, const Style& style);

/// The queue with its reasons in words.
std::vector<ToldWaiter> told_waiters(const Queue& queue, const Style& style);

/// A line a waiter, no more than style.width columns, or one sentence when nobody waits.
std::string queue_table(const Queue& queue, const Style& style);

}  // namespace berth::render
