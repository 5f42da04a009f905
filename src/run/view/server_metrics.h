#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace berth::view {

/// The counters of a server since it began.
struct ServerCounts {
  std::size_t network = 0;                 ///< connections that are open
  std::size_t local = 0;                   ///< those of the Unix socket
  std::uint64_t refused = 0;               ///< connections for which there was no room
  std::uint64_t evicted = 0;               ///< connections that were closed to make room
  std::map<int, std::uint64_t> answers{};  ///< by HTTP status
};
/// In Prometheus' text format.
std::string server_metrics(const ServerCounts& counts);

/// How a hub has asked its agents.
struct PollCounts {
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;  ///< without an answer that could be read
  double seconds = 0;        ///< the time that all of them took
};

}  // namespace berth::view
