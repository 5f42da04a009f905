#pragma once

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

}  // namespace berth::view
