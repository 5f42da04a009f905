#include "berth/view/metric_writer.h"
#include "berth/base/printable.h"

#include <fmt/format.h>

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

}  // namespace berth::view
