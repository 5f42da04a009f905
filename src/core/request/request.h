#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/words.h"
#include "berth/request/expression.h"

namespace berth {

/// Which of the fitting devices to take.
enum class Order {
  automatic,     ///< one device: least affinity to the other free ones; several: topology
  index,         ///< lowest index first
  random,        ///< drawn with Request::seed
  best_fit,      ///< least free memory that fits
  worst_fit,     ///< most free memory
  coolest,       ///< lowest temperature
  least_power,   ///< lowest power draw
  most_capable,  ///< highest compute capability, then most memory in total, then most free
  topology,      ///< the best connected set that leaves the rest best connected
  listed,        ///< as Request::admitted, else Request::devices lists them
};

/// As on the command line.
constexpr auto words_of(Order) {
  return std::to_array<std::string_view>({"auto", "index", "random", "best-fit", "worst-fit", "coolest",
                                          "least-power", "most-capable", "topology", "listed"});
}

/// The longest time limit of a request: a year. A request that needs longer has no time limit.
inline constexpr std::int64_t kLongestTimeS = 365LL * 24 * 3600;

/// The most devices of one request, and so of one lease: as many as a ticket surely names, whatever
/// else it says (ticket_codec.cpp). Eight GPUs of seven MIG instances have so many.
inline constexpr unsigned kMostDevices = 56;

/// What a user asks for. Every filter (`--name`, `--free`, `--where` …) is a condition, and all
/// conditions must hold.
struct Request {
  unsigned count = 1;
  std::vector<Expression> conditions;  ///< all must hold; judged in this order
  std::vector<std::string> devices;    ///< selectors (selector.h) to choose among; empty: all
  std::vector<std::string> exclude;    ///< selectors never to choose
  /// UUIDs of the devices that the asking program itself admits, the best first; nullopt: it has
  /// not looked.
  std::optional<std::vector<std::string>> admitted;
  Order order = Order::automatic;
  std::optional<std::uint64_t> seed;  ///< for Order::random; the caller fills it in
  bool shared = false;                ///< the lease may share its devices with other leases
  std::uint64_t promise_bytes = 0;    ///< if shared: memory needed on each device
  unsigned allowed_processes = 0;     ///< `--processes N`: outsiders that may already be there
  /// `--time`: how long the lease lasts at most, from its grant on. nullopt: the request does not
  /// say.
  std::optional<std::int64_t> time_s{};
  /// `--yield`: the request waits behind requests that do not yield, and its lease ends for them,
  /// with this time between SIGTERM and SIGKILL. nullopt: it does not yield.
  std::optional<std::int64_t> yield_s{};
  /// `--mps-percent`: the job uses at most so much of a GPU's processors, where MPS serves it. 0:
  /// the request does not say.
  unsigned mps_percent = 0;
  /// `--clean`: a whole GPU on which nobody else computes, whatever the site ignores; and the run
  /// is looked at from its start on, so that its receipt can say whether it stayed so.
  bool clean = false;
  /// The asking process computes on the device already, so no waiting request could have it: this
  /// request waits behind nobody.
  bool adopts_running_process = false;

  /// The readings that are needed to judge this request and to order devices by it, and no others.
  /// Topology is not among them: whether it is needed is known only after judging
  /// (`readings_to_choose`, choice.h).
  ReadingSet readings() const;
};

/// How many devices are meant if the user does not say: as many as `--devices` names, or one.
unsigned usual_count(const Request& request);

/// `--memory auto`, in the place of the bytes that are promised: as much as earlier runs of the
/// command had in use. Whoever knows the command settles it by `with_memory` before the request is
/// made.
inline constexpr std::uint64_t kMemoryByRuns = std::numeric_limits<std::uint64_t>::max();
bool asks_memory_by_runs(const Request& request);
/// The request for a share of this size, or for whole devices.
Request with_memory(Request request, std::optional<std::uint64_t> bytes);

/// The grace of a request that yields, if it does not say: --yield; and the longest.
inline constexpr std::int64_t kUsualYieldS = 30;
inline constexpr std::int64_t kLongestYieldS = 3600;

/// Checks the request itself, whatever the machine: it asks for no devices or more than
/// kMostDevices, two conditions that no number can
/// meet, a promise without `shared` … Error: `usage`.
Result<void> check(const Request& request);

/// Checks a time limit. Error: `usage`.
Result<void> check_time(std::int64_t seconds);
Result<void> check_yield(std::int64_t seconds);

}  // namespace berth
