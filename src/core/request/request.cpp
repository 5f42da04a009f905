#include "berth/request/request.h"

#include <algorithm>
#include <map>

#include "berth/base/fail.h"
#include "berth/base/text_match.h"

namespace berth {
namespace {

/// The tightest thresholds on one field, and who set them.
struct Bounds {
  std::optional<Threshold> low, high;
  std::string low_text, high_text;
};

bool tighter(const Threshold& a, const std::optional<Threshold>& b) {
  if (!b) return true;
  if (a.value != b->value) return a.at_least ? a.value > b->value : a.value < b->value;
  return a.strict && !b->strict;
}

bool contradict(const Bounds& bounds) {
  if (!bounds.low || !bounds.high) return false;
  const double low = bounds.low->value, high = bounds.high->value;
  return low > high || (low == high && (bounds.low->strict || bounds.high->strict));
}

Result<void> check_conditions(const std::vector<Expression>& conditions) {
  // Shares and amounts of memory cannot be compared without a device.
  std::map<std::pair<std::string, bool>, Bounds> fields;
  for (const Expression& condition : conditions) {
    for (const Expression& part : condition.conjuncts()) {
      const std::optional<Threshold> threshold = part.threshold();
      if (!threshold) continue;
      Bounds& bounds = fields[{threshold->field, threshold->share}];
      auto& bound = threshold->at_least ? bounds.low : bounds.high;
      if (!tighter(*threshold, bound)) continue;
      bound = threshold;
      (threshold->at_least ? bounds.low_text : bounds.high_text) = part.text();
    }
  }
  for (const auto& [field, bounds] : fields) {
    if (contradict(bounds)) {
      return fail(ErrorCode::usage, "the request contradicts itself: no device can have {} and {}",
                  bounds.low_text, bounds.high_text);
    }
  }
  return {};
}

}  // namespace

ReadingSet Request::readings() const {
  // Names are needed to know whether a runtime may count the devices otherwise, process details to
  // say who stands in the way and to know the programs and users that the site does not count.
  ReadingSet set =
      ReadingKind::name | ReadingKind::memory | ReadingKind::processes | ReadingKind::process_details;
  set |= ReadingKind::compute_mode | ReadingKind::mig | ReadingKind::health;
  for (const Expression& condition : conditions) set |= condition.readings();
  if (order == Order::coolest) set |= ReadingKind::temperature;
  if (order == Order::least_power) set |= ReadingKind::power;
  if (order == Order::most_capable) set |= ReadingKind::capability;
  const auto by_bus = [](const std::string& selector) { return selector.find('.') != std::string::npos; };
  if (std::any_of(devices.begin(), devices.end(), by_bus) ||
      std::any_of(exclude.begin(), exclude.end(), by_bus)) {
    set |= ReadingKind::pci;
  }
  return set;
}

unsigned usual_count(const Request& request) {
  return request.devices.empty() ? 1U : static_cast<unsigned>(request.devices.size());
}

bool asks_memory_by_runs(const Request& request) {
  return request.promise_bytes == kMemoryByRuns;
}

Request with_memory(Request request, std::optional<std::uint64_t> bytes) {
  request.shared = bytes.has_value();
  request.promise_bytes = bytes.value_or(0);
  return request;
}

Result<void> check_time(std::int64_t seconds) {
  if (seconds >= 1 && seconds <= kLongestTimeS) return {};
  return fail(ErrorCode::usage, "a time must be at least 1s and at most 365d; leave it out for no limit");
}

Result<void> check_yield(std::int64_t seconds) {
  if (seconds >= 1 && seconds <= kLongestYieldS) return {};
  return fail(ErrorCode::usage, "the grace of a job that yields must be at least 1s and at most 1h");
}

Result<void> check(const Request& request) {
  if (request.count == 0) return fail(ErrorCode::usage, "a request for 0 devices: ask for at least 1");
  if (request.count > kMostDevices) {
    return fail(
        ErrorCode::usage,
        "{} GPUs are asked for, and a lease holds {} at most; `berth list` shows how many this machine has",
        request.count, kMostDevices);
  }
  if (request.promise_bytes > 0 && !request.shared) {
    return fail(ErrorCode::usage, "memory can be promised only on a shared device, not on a whole one");
  }
  if (request.clean && (request.shared || request.allowed_processes > 0))
    return fail(
        ErrorCode::usage,
        "--clean is a GPU on which nobody else computes: leave out --memory, --shared and --processes");
  if (request.time_s) BERTH_DO(check_time(*request.time_s));
  if (request.mps_percent > 100) return fail(ErrorCode::usage, "--mps-percent is at most 100");
  if (request.yield_s) BERTH_DO(check_yield(*request.yield_s));
  for (const std::string& device : request.devices) {
    for (const std::string& excluded : request.exclude) {
      if (same_text(device, excluded)) {
        return fail(ErrorCode::usage, "device {} is both asked for and excluded", device);
      }
    }
  }
  return check_conditions(request.conditions);
}

}  // namespace berth
