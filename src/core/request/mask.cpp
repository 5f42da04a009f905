#include "berth/request/request.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "berth/base/text.h"

// How CUDA reads its mask is known from its documentation and from use, not from a source; where it
// is not known (duplicates, mixed kinds, blanks) the reading here is the narrower one, so that
// Berth never gives a job a device that it cannot see. ROCm's rules are in the source of its
// runtime (amd_filter_device.cpp of ROCR-Runtime); where vendors differ, Vendor has the rule.
namespace berth {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  auto entries = parts_at(text, ',');
  for (std::string_view& each : entries) each = trimmed(each);
  return entries;
}

/// The words of Slurm and of people for "none". Any invalid first entry has this effect; these mean
/// it.
bool means_none(std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords{"", "-1", "none", "void", "NoDevFiles"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return same_text(text, word); });
}

/// An entry as the runtime reads it: a device, or why the list ends before it.
struct Entry {
  const Device* device = nullptr;
  std::string invalid;
};

Entry resolve(std::string_view entry, const Vendor& vendor, const Snapshot& snapshot) {
  if (entry.empty()) return {nullptr, "an empty entry"};
  const bool index = is_index(entry);
  const auto has_prefix = [&](std::string_view prefix) { return begins_with_text(entry, prefix); };
  if (!index && std::ranges::none_of(vendor.uuid_prefixes, has_prefix))
    return {nullptr, "neither an index nor a UUID"};
  if (index && vendor.indices_are_c_numbers && entry.size() > 1 && entry.starts_with('0'))
    return {nullptr, "an octal number"};

  std::vector<std::size_t> indices = devices_named(entry, snapshot);
  // The beginning of a UUID is enough for a GPU only.
  if (begins_with_text(entry, "MIG-")) {
    std::erase_if(indices, [&](std::size_t place) {
      return !same_text(snapshot.devices[place].uuid, entry) && entry.find('/') == std::string_view::npos;
    });
  }
  // A name of our own is none that the runtime knows.
  if (!index) std::erase_if(indices, [&](std::size_t place) { return !fits_mask(snapshot.devices[place]); });
  if (indices.empty()) return {nullptr, "no such device"};
  const Device& first = snapshot.devices[indices.front()];
  // A GPU that is split gives its first instance: CUDA shows a process no second one.
  const bool one_gpu = std::all_of(indices.begin(), indices.end(), [&](std::size_t place) {
    return snapshot.devices[place].index == first.index;
  });
  if (!one_gpu) return {nullptr, "the beginning of several UUIDs"};
  return {&first, ""};
}

std::string setting(const Mask& mask) {
  return fmt::format("{}={}", vendor_named(mask.vendor).mask_variable, mask.text);
}

void cut(Mask& mask, std::string_view entry, std::string_view why) {
  mask.notes.push_back(fmt::format("{} ends before \"{}\": {}", setting(mask), entry, why));
}

/// Takes the entries up to the first invalid one.
void take(Mask& mask, const std::vector<std::string_view>& entries, const Snapshot& snapshot) {
  const Vendor vendor = vendor_named(mask.vendor);
  const bool by_index = is_index(entries.front());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view text = entries[i];
    const Entry entry = resolve(text, vendor, snapshot);
    if (!entry.device) return cut(mask, text, entry.invalid);
    if (!vendor.mask_mixes && is_index(text) != by_index)
      return cut(mask, text, "indices and UUIDs do not mix");
    const Device& device = *entry.device;
    if (device.uuid.empty()) {  // it does not even tell its name: no choice can be lost with it
      mask.notes.push_back(fmt::format("device {} of {} does not answer", label(device), setting(mask)));
      continue;
    }
    if (std::find(mask.uuids.begin(), mask.uuids.end(), device.uuid) != mask.uuids.end()) {
      if (!vendor.twice_hides_all) return cut(mask, text, "it is named twice");
      mask.uuids.clear();
      mask.notes.push_back(fmt::format("{} names device {} twice: {} then sees none", setting(mask),
                                       label(device), vendor.runtime));
      return;
    }
    if (device.mig && !mask.uuids.empty()) return cut(mask, text, "a MIG instance is visible only alone");
    mask.uuids.push_back(device.uuid);
    if (!device.mig) continue;
    if (i + 1 < entries.size()) cut(mask, entries[i + 1], "CUDA sees only the first MIG instance");
    return;
  }
}

Mask resolve_mask(const Vendor& vendor, const std::string& text, const Snapshot& snapshot,
                  const MaskVariables& variables) {
  Mask mask{text, {}, {}, std::string(vendor.name)};
  const std::vector<std::string_view> entries = split(text);
  if (means_none(entries.front())) {
    mask.notes.push_back(fmt::format("{} hides all devices", setting(mask)));
    return mask;
  }
  take(mask, entries, snapshot);
  if (is_index(entries.front()) && numbering_is_ambiguous(vendor, snapshot, variables)) {
    mask.notes.push_back(
        fmt::format("{} is read in PCI bus order; the models differ here, and without {}={} {} may count the "
                    "fastest first",
                    setting(mask), vendor.order_variable, vendor.order_value, vendor.runtime));
  }
  return mask;
}

bool has_device_of(const Vendor& vendor, const Snapshot& snapshot) {
  return std::ranges::find(snapshot.devices, vendor.name, &Device::vendor) != snapshot.devices.end();
}

}  // namespace

bool is_of_one_vendor(const Snapshot& snapshot) {
  return std::ranges::adjacent_find(snapshot.devices, std::ranges::not_equal_to(), &Device::vendor) ==
         snapshot.devices.end();
}

Snapshot devices_of_vendor(const Snapshot& snapshot, std::string_view vendor) {
  Snapshot part = snapshot;
  std::erase_if(part.devices, [&](const Device& device) { return device.vendor != vendor; });
  const unsigned first = part.devices.empty() ? 0 : part.devices.front().index;
  for (Device& device : part.devices) device.index -= first;
  return part;
}

bool numbering_is_ambiguous(const Vendor& vendor, const Snapshot& snapshot, const MaskVariables& variables) {
  if (vendor.order_variable.empty()) return false;
  const auto order = variables.find(vendor.order_variable);
  if (order != variables.end() && order->second == vendor.order_value) return false;
  const Device* first = nullptr;
  for (const Device& device : snapshot.devices) {
    if (device.vendor != vendor.name || device.mig || device.name.empty()) continue;
    if (first && first->name != device.name) return true;
    first = &device;
  }
  return false;
}

bool runtime_counts_as_the_driver(const Vendor& vendor, const Snapshot& snapshot) {
  return std::ranges::all_of(snapshot.devices, [&](const Device& device) {
    return device.vendor != vendor.name ||
           (device.state == DeviceState::ok && !device.mig && !is_split(device));
  });
}

std::vector<Mask> resolve_masks(const MaskVariables& variables, const Snapshot& snapshot) {
  std::vector<Mask> masks;
  for (const Vendor& vendor : vendors()) {
    const auto value = variables.find(vendor.mask_variable);
    if (value == variables.end() || !has_device_of(vendor, snapshot)) continue;
    const auto one_vendor = is_of_one_vendor(snapshot);
    masks.push_back(resolve_mask(
        vendor, value->second, one_vendor ? snapshot : devices_of_vendor(snapshot, vendor.name), variables));
  }
  return masks;
}

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
