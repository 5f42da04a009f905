#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/verdict/queue_rules.h"

// What is said of the one queue of a lab outside of it: what a request says of itself when it
// enters, and what people see of the order.
namespace berth {

/// The requests for the same number of GPUs are a lane. With one window for all, requests for many
/// GPUs would fill it while the free GPUs are enough for requests for few (tests/bench/placement.h:
/// waits two to three times as long as in one queue). If no request may start before an earlier
/// one, all are one lane: 0.
unsigned lane_of(unsigned gpus, const QueueRules& rules);

/// What Ticket::origin says of a request of this process on this machine.
std::string origin_of(std::string_view machine, std::int64_t pid);
/// What others say of it is cut to this length: it is shown to people.
inline constexpr std::size_t kLongestOrigin = 80;

/// A request that stands in the queue of a host.
struct LabStanding {
  std::string origin;        ///< as of its ticket
  std::size_t position = 1;  ///< 1: no earlier request could start on a host that it names

  bool operator==(const LabStanding&) const = default;
};

/// The lab queue as people see it.
struct LabOrder {
  std::vector<LabStanding> standing{};  ///< in the order of the queue
  std::size_t outside = 0;              ///< how many requests stand in the queue of no host yet

  bool operator==(const LabOrder&) const = default;
};

}  // namespace berth
