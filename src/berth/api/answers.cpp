#include "berth/api/answers.h"

#include <sys/random.h>

#include <algorithm>
#include <ctime>

#include "berth/core/mask.h"
#include "berth/render/explain.h"

namespace berth::api {

render::Style plain_style() {
  render::Style style;
  const std::time_t now = std::time(nullptr);
  style.now_s = now;
  std::tm local{};
  if (::localtime_r(&now, &local) != nullptr) style.utc_offset_s = static_cast<std::int32_t>(local.tm_gmtoff);
  return style;
}

std::vector<Finding> with_devices(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  const auto devices = render::devices_of(verdicts, snapshot);
  std::vector<Finding> found;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (devices[i] != nullptr) found.push_back({*devices[i], verdicts[i]});
  }
  return found;
}

std::vector<Finding> findings(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  std::vector<Finding> found = with_devices(verdicts, snapshot);
  for (Finding& each : found) {
    if (!each.verdict.free())
      each.verdict.reason = render::sentence(each.verdict, each.device, plain_style());
  }
  return found;
}

std::string visible_devices(const std::vector<Device>& devices, const Snapshot& snapshot) {
  const bool by_index = cuda_counts_as_the_driver(snapshot);
  std::string value;
  for (const Device& device : devices) {
    value += value.empty() ? "" : ",";
    value += by_index ? std::to_string(device.index) : device.uuid;
  }
  return value;
}

std::vector<Device> devices_among(const std::vector<std::string>& uuids, const Snapshot& snapshot) {
  std::vector<Device> found;
  for (const std::string& uuid : uuids) {
    if (const Device* device = find_device(snapshot, uuid)) found.push_back(*device);
  }
  return found;
}

Request settled(Request request) {
  if (request.order != Order::random || request.seed) return request;
  std::uint32_t seed = 0;
  // Where the kernel gives none, always the same choice is still a choice.
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = 0;
  request.seed = seed;
  return request;
}

}  // namespace berth::api
