// What CUDA does with its mask is known from its documentation and from use, not from a source; where it is
// not known (duplicates, mixed kinds, blanks) the reading here is the narrower one, so that Berth never hands
// out a device that the job then cannot see.
#include "berth/core/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/core/selector.h"
#include "berth/core/text_match.h"

namespace berth {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> entries;
  while (true) {
    const std::size_t comma = text.find(',');
    entries.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return entries;
    text.remove_prefix(comma + 1);
  }
}

/// What Slurm and people write to say "none". Any invalid first entry has this effect; these mean it.
bool means_none(std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords{"", "-1", "none", "void", "NoDevFiles"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return same_text(text, word); });
}

/// One entry as CUDA reads it: a device, or why the list ends before it.
struct Entry {
  const Device* device = nullptr;
  std::string invalid;
};

Entry resolve(std::string_view entry, const Snapshot& snapshot) {
  if (entry.empty()) return {nullptr, "an empty entry"};
  const bool gpu = begins_with_text(entry, "GPU-");
  const bool mig = begins_with_text(entry, "MIG-");
  if (!gpu && !mig && !is_index(entry)) return {nullptr, "neither an index nor a UUID"};

  std::vector<std::size_t> places = devices_named(entry, snapshot);
  // The beginning of a UUID is enough for a GPU only.
  if (mig) {
    std::erase_if(places, [&](std::size_t place) {
      return !same_text(snapshot.devices[place].uuid, entry) && entry.find('/') == std::string_view::npos;
    });
  }
  if (places.empty()) return {nullptr, "no such device"};
  const Device& first = snapshot.devices[places.front()];
  // A GPU that is split gives its first instance: CUDA shows a process no second one.
  const bool one_gpu = std::all_of(places.begin(), places.end(), [&](std::size_t place) {
    return snapshot.devices[place].index == first.index;
  });
  if (!one_gpu) return {nullptr, "the beginning of several UUIDs"};
  return {&first, ""};
}

void cut(Mask& mask, std::string_view entry, std::string_view why) {
  mask.notes.push_back(fmt::format("CUDA_VISIBLE_DEVICES={} ends before \"{}\": {}", mask.text, entry, why));
}

/// Takes the entries up to the first invalid one.
void take(Mask& mask, const std::vector<std::string_view>& entries, const Snapshot& snapshot) {
  const bool by_index = is_index(entries.front());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view text = entries[i];
    const Entry entry = resolve(text, snapshot);
    if (!entry.device) return cut(mask, text, entry.invalid);
    if (is_index(text) != by_index) return cut(mask, text, "indices and UUIDs do not mix");
    const Device& device = *entry.device;
    if (device.uuid.empty()) {  // it does not even tell its name: no choice can be lost with it
      mask.notes.push_back(
          fmt::format("device {} of CUDA_VISIBLE_DEVICES={} does not answer", label(device), mask.text));
      continue;
    }
    if (std::find(mask.uuids.begin(), mask.uuids.end(), device.uuid) != mask.uuids.end()) {
      mask.uuids.clear();
      mask.notes.push_back(fmt::format("CUDA_VISIBLE_DEVICES={} names device {} twice: CUDA then sees none",
                                       mask.text, label(device)));
      return;
    }
    if (device.mig && !mask.uuids.empty()) return cut(mask, text, "a MIG instance is visible only alone");
    mask.uuids.push_back(device.uuid);
    if (!device.mig) continue;
    if (i + 1 < entries.size()) cut(mask, entries[i + 1], "CUDA sees only the first MIG instance");
    return;
  }
}

}  // namespace

bool numbering_is_ambiguous(const Snapshot& snapshot, std::optional<std::string_view> device_order) {
  if (device_order && *device_order == "PCI_BUS_ID") return false;
  const Device* first = nullptr;
  for (const Device& device : snapshot.devices) {
    if (device.mig || device.name.empty()) continue;
    if (first && first->name != device.name) return true;
    first = &device;
  }
  return false;
}

bool cuda_counts_as_the_driver(const Snapshot& snapshot) {
  return std::ranges::all_of(snapshot.devices, [](const Device& device) {
    return device.state == DeviceState::ok && !device.mig && !is_split(device);
  });
}

std::optional<Mask> resolve_mask(std::optional<std::string_view> value, const Snapshot& snapshot,
                                 std::optional<std::string_view> device_order) {
  if (!value) return std::nullopt;
  Mask mask{std::string(*value), {}, {}};
  const std::vector<std::string_view> entries = split(*value);
  if (means_none(entries.front())) {
    mask.notes.push_back(fmt::format("CUDA_VISIBLE_DEVICES={} hides all devices", mask.text));
    return mask;
  }
  take(mask, entries, snapshot);
  if (is_index(entries.front()) && numbering_is_ambiguous(snapshot, device_order)) {
    mask.notes.push_back(
        fmt::format("CUDA_VISIBLE_DEVICES={} is read in PCI bus order; the models differ here, and without "
                    "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA may count the fastest first",
                    mask.text));
  }
  return mask;
}

}  // namespace berth
