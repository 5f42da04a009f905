#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::render {

using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

/// Writes Prometheus' text format. The names get the prefix berth_; labels may have been made by anybody.
class MetricWriter {
 public:
  /// What follows belongs to this metric. Nothing is written until it has a sample.
  void metric(std::string_view name, std::string_view type, std::string_view help);
  /// nullopt: what is not known has no series.
  void sample(const MetricLabels& labels, std::optional<double> value, std::string_view suffix = "");

  std::string take() { return std::move(text_); }

 private:
  void add_escaped(std::string_view text);

  std::string text_;
  std::string head_;
  std::string_view name_;
};

}  // namespace berth::render
