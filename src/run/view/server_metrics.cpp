#include "berth/view/server_metrics.h"

#include <fmt/format.h>

#include "berth/base/text.h"

namespace berth::view {

void MetricWriter::metric(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  head_ = fmt::format("# HELP berth_{0} {2}\n# TYPE berth_{0} {1}\n", name, type, help);
}

void MetricWriter::sample(const MetricLabels& labels, std::optional<double> value, std::string_view suffix) {
  if (!value) return;
  text_ += head_;
  head_.clear();
  text_ += fmt::format("berth_{}{}", name_, suffix);
  char before = '{';
  for (const auto& [name, text] : labels) {
    text_ += fmt::format("{}{}=\"", before, name);
    add_escaped(text);
    text_ += '"';
    before = ',';
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", *value);
}

void MetricWriter::add_escaped(std::string_view text) {
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') text_ += '\\';
    text_ += c;
  }
}

std::string server_metrics(const ServerCounts& counts) {
  MetricWriter writer;
  writer.metric("serve_connections", "gauge", "Connections that are open.");
  writer.sample({{"at", "network"}}, static_cast<double>(counts.network));
  writer.sample({{"at", "socket"}}, static_cast<double>(counts.local));
  writer.metric("serve_connections_refused_total", "counter", "Connections that there was no room for.");
  writer.sample({}, static_cast<double>(counts.refused));
  writer.metric("serve_connections_shown_out_total", "counter",
                "Connections that asked for nothing and had to make room.");
  writer.sample({}, static_cast<double>(counts.evicted));
  writer.metric("serve_answers_total", "counter",
                "Answers by their HTTP status; event streams are not among them.");
  for (const auto& [status, count] : counts.answers)
    writer.sample({{"status", std::to_string(status)}}, static_cast<double>(count));
  return writer.take();
}

}  // namespace berth::view
