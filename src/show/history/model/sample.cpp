#include "berth/history/model/sample.h"

namespace berth::history {
namespace {

void raise(Reading<int>& most, const Reading<int>& value) {
  if (value && (!most || *value > *most)) most = value;
}

}  // namespace

void SampleMerger::Mean::add(const Reading<int>& value) {
  if (!value) return;
  sum += *value;
  ++count;
}

Reading<int> SampleMerger::Mean::value() const {
  if (count == 0) return std::nullopt;
  return static_cast<int>((sum + count / 2) / count);
}

void SampleMerger::add(const Sample& sample) {
  utilization_.add(sample.utilization_percent);
  power_.add(sample.power_w);
  leased_.add(sample.leased_percent);
  raise(memory_used_mib_, sample.memory_used_mib);
  raise(temperature_c_, sample.temperature_c);
}

Sample SampleMerger::merged() const {
  return {utilization_.value(), memory_used_mib_, temperature_c_, power_.value(), leased_.value()};
}

std::vector<SampleRow> merged_rows(std::span<const SampleRow> rows, std::int64_t step_s) {
  std::map<std::pair<std::int64_t, std::string_view>, SampleMerger> steps;
  for (const SampleRow& row : rows) steps[{step_of(row.time_s, step_s), row.uuid}].add(row.sample);
  std::vector<SampleRow> merged;
  merged.reserve(steps.size());
  for (const auto& [key, merger] : steps)
    merged.push_back({key.first, std::string(key.second), merger.merged()});
  return merged;
}

}  // namespace berth::history
