#include "berth/lab_queue/model/write_allowance.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace berth::lab_agent {
namespace {

/// For the key, and what etcd writes beside a value.
constexpr std::size_t kOfAnyPut = 256;

std::size_t length_of(const std::vector<std::string>& names) {
  constexpr std::size_t kBetween = 3;  // as JSON has them
  std::size_t length = 0;
  for (const std::string& each : names) length += each.size() + kBetween;
  return length;
}

}  // namespace

std::size_t weight_of(const lab_queue::LabChange& change) {
  std::size_t weight = 0;
  for (const lab_queue::LabChange::Put& put : change.puts) {
    weight += kOfAnyPut;
    if (const auto* ticket = std::get_if<LabTicket>(&put.value))
      weight += length_of(ticket->hosts) + length_of(ticket->joined);
  }
  return weight;
}

bool WriteAllowance::take(std::uint32_t uid, std::size_t weight, SteadyTime now) {
  using Seconds = std::chrono::duration<double>;
  Used& used = used_[uid];
  const double since = Seconds(now - used.at).count();
  const auto back = static_cast<std::int64_t>(std::min(since, 1e6) * static_cast<double>(kPerSecond));
  if (back > 0) used = {std::max<std::int64_t>(0, used.bytes - back), now};
  if (used.bytes >= kAtOnce) return false;
  used.bytes += static_cast<std::int64_t>(weight);
  return true;
}

}  // namespace berth::lab_agent
