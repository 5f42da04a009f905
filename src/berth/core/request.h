#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/expression.h"

namespace berth {

/// Which of the fitting devices to take.
enum class Order {
  automatic,     ///< one: least affinity to the other free ones; several: topology
  index,         ///< lowest index first
  random,        ///< by Request::seed
  best_fit,      ///< least free memory that fits
  worst_fit,     ///< most free memory
  coolest,       ///< lowest temperature
  least_power,   ///< lowest power draw
  most_capable,  ///< highest compute capability, then most memory in total, then most free
  topology,      ///< the best connected set that leaves the rest best connected
  listed,        ///< as Request::admitted, else Request::devices lists them
};

/// Text form as on the command line: "auto", "best-fit" …
std::optional<Order> order_from_text(std::string_view text);
std::string_view to_text(Order order);
bool read_value(std::string_view text, Order& order);  ///< false: it is none
/// All text forms, in the order of the enum.
const std::vector<std::string_view>& order_names();

/// The longest time that a request can say it takes: a year. Whoever needs longer says none.
inline constexpr std::int64_t kLongestTimeS = 365LL * 24 * 3600;

/// What a user asks for. Every filter (`--name`, `--free`, `--where` …) is a condition; all must hold.
struct Request {
  unsigned count = 1;
  std::vector<Expression> conditions;  ///< joined by "and", in the order in which they are judged
  std::vector<std::string> devices;    ///< selectors (selector.h) to choose among; empty: all
  std::vector<std::string> exclude;    ///< selectors never to choose
  /// UUIDs that the asking program itself lets through, the best first; nullopt: it has not looked.
  std::optional<std::vector<std::string>> admitted;
  Order order = Order::automatic;
  std::optional<std::uint64_t> seed;  ///< for Order::random; the caller fills it in
  bool shared = false;                ///< company is welcome
  std::uint64_t promise_bytes = 0;    ///< shared: memory needed on each device
  unsigned allowed_processes = 0;     ///< `--processes N`: outsiders that may already be there
  /// `--time`: how long it takes at most, from its grant on. nullopt: it does not say.
  std::optional<std::int64_t> time_s{};
  /// `--yield`: it is ended for whoever does not yield, with so long between SIGTERM and SIGKILL, and stands
  /// in line behind them. nullopt: it does not yield.
  std::optional<std::int64_t> yield_s{};
  /// Whoever asks computes there already, so nobody in line could have it instead: it waits behind nobody.
  bool is_there_already = false;

  /// The readings that judging this request and ordering by it need, and no others. Not the topology: whether
  /// that is needed shows only when it is judged (`readings_to_choose`, select.h).
  ReadingSet readings() const;
};

/// The longest grace of one that yields.
inline constexpr std::int64_t kLongestYieldS = 3600;

/// What is wrong with the request itself, whatever the machine: no devices asked for, conditions that no
/// number meets both, a promise that is not shared … Error: `usage`.
Result<void> check(const Request& request);

/// What is wrong with a time that is to be said. Error: `usage`.
Result<void> check_time(std::int64_t seconds);
Result<void> check_yield(std::int64_t seconds);

}  // namespace berth
