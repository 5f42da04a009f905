#include "berth/api/findings.h"

#include "berth/answers/answers.h"
#include "berth/view/verdict_text.h"

namespace berth::api {

std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  const auto devices = view::devices_of(verdicts, snapshot);
  std::vector<Finding> found;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (devices[i] != nullptr) found.push_back({*devices[i], verdicts[i]});
  }
  return found;
}

std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  return with_devices(leasing::with_reasons(verdicts, snapshot, leasing::plain_style()), snapshot);
}

std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot) {
  std::vector<Device> found;
  for (const std::string& uuid : uuids) {
    if (const Device* device = find_device(snapshot, uuid)) found.push_back(*device);
  }
  return found;
}

}  // namespace berth::api
