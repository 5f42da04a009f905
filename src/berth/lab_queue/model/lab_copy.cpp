#include "berth/lab_queue/model/lab_copy.h"

namespace berth::lab_queue {

std::string key_of(std::string_view folder, std::string_view name) {
  return std::string(folder) + std::string(name);
}

const LabStart* LabCopy::start_of(std::string_view id) const {
  const auto found = starts_.find(id);
  return found == starts_.end() ? nullptr : &found->second;
}

LabCopy::Revisions LabCopy::revisions(std::string_view key) const {
  const auto known = keys_.find(key);
  return known == keys_.end() ? Revisions{} : known->second;
}

GpusByUser LabCopy::gpus_by_user() const {
  GpusByUser has;
  for (const auto& [id, start] : starts_) has.in_all[start.uid] += start.gpus;
  has.firmly = has.in_all;
  return has;
}

std::vector<Numbered> LabCopy::numbers() const {
  std::vector<Numbered> numbers = queue_.numbers();
  for (const auto& [id, start] : starts_)
    if (start.number) numbers.push_back({start.uid, start.gpus, *start.number, true});
  return numbers;
}

}  // namespace berth::lab_queue
