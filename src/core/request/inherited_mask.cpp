// How CUDA reads its mask is known from its documentation and from use, not from a source; where it
// is not known (duplicates, mixed kinds, blanks) the reading here is the narrower one, so that
// Berth never gives a job a device that it cannot see. ROCm's rules are in the source of its
// runtime (amd_filter_device.cpp of ROCR-Runtime); where vendors differ, Vendor has the rule.
#include "berth/request/inherited_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/base/text_match.h"
#include "berth/request/job_mask.h"
#include "berth/request/selector.h"

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

}  // namespace berth
