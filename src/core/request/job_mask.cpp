#include "berth/request/job_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "berth/base/text_match.h"
#include "berth/request/selector.h"

namespace berth {
namespace {

// Lives as long as the snapshot: the Vendor of one that is not known refers to it.
std::string_view vendor_of_first(const std::vector<std::string>& uuids, const Snapshot& snapshot) {
  for (const std::string& uuid : uuids) {
    if (const Device* device = find_device(snapshot, uuid)) return device->vendor;
  }
  return snapshot.devices.empty() ? kUntoldVendor : std::string_view(snapshot.devices.front().vendor);
}

bool names_uuids(const Mask& mask) {
  const std::string_view text = mask.text;
  return !is_index(trimmed(text.substr(0, text.find(','))));
}

bool masks_a_device(std::string_view variable, const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.devices, [variable](const Device& device) {
    return vendor_of(device).mask_variable == variable;
  });
}

}  // namespace

unsigned index_in_vendor(const Device& device, const Snapshot& snapshot) {
  const auto first = std::ranges::find(snapshot.devices, device.vendor, &Device::vendor);
  return device.index - first->index;
}

std::optional<std::vector<std::optional<unsigned>>> runtime_indices(const std::vector<std::string>& uuids,
                                                                    const Snapshot& snapshot) {
  const std::string_view vendor = vendor_of_first(uuids, snapshot);
  std::vector<std::optional<unsigned>> indices(uuids.size());
  unsigned counted = 0;
  for (const Device& device : snapshot.devices) {
    const bool is_away = device.state == DeviceState::lost || device.state == DeviceState::not_permitted;
    if (device.vendor != vendor || device.mig || is_split(device) || is_away) continue;
    if (device.state != DeviceState::ok) return std::nullopt;
    const auto found = std::ranges::find(uuids, device.uuid);
    if (found != uuids.end()) indices[static_cast<std::size_t>(found - uuids.begin())] = counted;
    ++counted;
  }
  return indices;
}

bool fits_mask(const Device& device) {
  const Vendor vendor = vendor_of(device);
  if (vendor.uuid_prefixes.empty()) return false;
  if (vendor.uuid_digits == 0) return true;
  const std::string_view prefix = vendor.uuid_prefixes.front();
  const std::string_view uuid = device.uuid;
  return uuid.size() == prefix.size() + vendor.uuid_digits && uuid.starts_with(prefix) &&
         uuid.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

JobMask job_mask(const std::vector<std::string>& uuids, const Snapshot& snapshot, bool by_uuid) {
  const Vendor vendor = vendor_named(vendor_of_first(uuids, snapshot));
  std::vector<const Device*> devices;
  for (const std::string& uuid : uuids) devices.push_back(find_device(snapshot, uuid));
  const bool some_unknown = std::ranges::find(devices, nullptr) != devices.end();
  const auto some_unfit = [&] {
    return !some_unknown &&
           std::ranges::any_of(devices, [](const Device* device) { return !fits_mask(*device); });
  };
  JobMask mask;
  mask.vendor = vendor.name;
  mask.by_index =
      (!by_uuid && !some_unknown && runtime_counts_as_the_driver(vendor, snapshot)) || some_unfit();
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (i > 0) mask.visible += ',';
    mask.visible += mask.by_index ? std::to_string(index_in_vendor(*devices[i], snapshot)) : uuids[i];
  }
  if (!vendor.mask_variable.empty()) mask.variables.emplace_back(vendor.mask_variable, mask.visible);
  if (!vendor.order_variable.empty()) mask.variables.emplace_back(vendor.order_variable, vendor.order_value);
  for (const std::string_view name : vendor.inner_variables) {
    if (!masks_a_device(name, snapshot)) mask.unset.emplace_back(name);
  }
  return mask;
}

void bound_job(JobMask& mask, std::size_t devices, const Request& request) {
  const Vendor vendor = vendor_named(mask.vendor);
  if (const auto bytes = request.shared ? request.promise_bytes : 0;
      bytes > 0 && !vendor.share_limit_variable.empty()) {
    constexpr std::uint64_t kMiB = 1ULL << 20U;
    const std::uint64_t mebibytes = bytes / kMiB + (bytes % kMiB == 0 ? 0 : 1);
    std::string value;
    for (std::size_t i = 0; i < devices; ++i)
      value += fmt::format("{}{}={}M", value.empty() ? "" : ",", i, mebibytes);
    mask.variables.emplace_back(vendor.share_limit_variable, std::move(value));
  }
  if (request.mps_percent > 0 && !vendor.processor_limit_variable.empty())
    mask.variables.emplace_back(vendor.processor_limit_variable, std::to_string(request.mps_percent));
}

std::optional<std::string> numbering_note(const JobMask& mask, const Snapshot& snapshot,
                                          const MaskVariables& variables) {
  const Vendor vendor = vendor_named(mask.vendor);
  if (!mask.by_index || !numbering_is_ambiguous(vendor, snapshot, variables)) return std::nullopt;
  return fmt::format(
      "the GPUs here are of different models, and {} numbers them by speed unless {}={} is set; set it, or "
      "use --ids uuid",
      vendor.runtime, vendor.order_variable, vendor.order_value);
}

std::vector<std::optional<std::size_t>> ordinals(const std::vector<std::string>& uuids,
                                                 const Snapshot& snapshot, const MaskVariables& variables) {
  std::vector<std::optional<std::size_t>> numbers(uuids.size());
  const Vendor vendor = vendor_named(vendor_of_first(uuids, snapshot));
  const std::vector<Mask> masks = resolve_masks(variables, snapshot);
  const auto mask = std::ranges::find(masks, vendor.name, &Mask::vendor);
  const bool is_masked = mask != masks.end();
  // A wrong number would be another's device.
  const bool known =
      runtime_counts_as_the_driver(vendor, snapshot) && !numbering_is_ambiguous(vendor, snapshot, variables);
  if (!known && !(is_masked && names_uuids(*mask))) return numbers;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    const Device* device = find_device(snapshot, uuids[i]);
    if (device == nullptr) continue;
    if (!is_masked) {
      numbers[i] = index_in_vendor(*device, snapshot);
    } else if (const auto found = std::ranges::find(mask->uuids, uuids[i]); found != mask->uuids.end()) {
      numbers[i] = static_cast<std::size_t>(found - mask->uuids.begin());
    }
  }
  return numbers;
}

}  // namespace berth
