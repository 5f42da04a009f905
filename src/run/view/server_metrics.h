#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::view {

using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

/// Writes Prometheus' text format. The names get the prefix berth_. The texts of labels may come
/// from anybody.
class MetricWriter {
 public:
  /// Begins a metric: the samples that follow belong to it. Nothing is written until it has a
  /// sample.
  void metric(std::string_view name, std::string_view type, std::string_view help);
  /// nullopt: the value is not known, and has no series.
  void sample(const MetricLabels& labels, std::optional<double> value, std::string_view suffix = "");

  std::string take() { return std::move(text_); }

 private:
  void add_escaped(std::string_view text);

  std::string text_;
  std::string head_;
  std::string_view name_;
};

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
