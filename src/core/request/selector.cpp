#include "berth/request/selector.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "berth/base/fail.h"
#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"

namespace berth {
namespace {

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (text.empty() || error != std::errc() || end != last) return std::nullopt;
  return value;
}

/// The forms that a selector can have, taken apart once.
struct Selector {
  std::string_view text;
  std::optional<unsigned> index;
  std::optional<unsigned> slot;
  bool is_uuid = false;
  bool is_pci = false;

  explicit Selector(std::string_view selector) : text(trimmed(selector)), index(number(text)) {
    is_uuid = begins_with_text(text, "GPU-") || begins_with_text(text, "MIG-");
    const std::size_t colon = text.find(':');
    is_pci = colon != std::string_view::npos && text.find('.') != std::string_view::npos;
    if (is_uuid || is_pci || colon == std::string_view::npos) return;
    index = number(text.substr(0, colon));
    slot = number(text.substr(colon + 1));
    if (!slot) index.reset();
  }

  bool names(const Device& device) const {
    if (is_uuid) return begins_with_text(device.uuid, text) || same_text(path_text(device), text);
    if (is_pci) return !device.mig && ends_with_bus(device.pci_bus_id);
    if (!index || device.index != *index) return false;
    return slot ? device.mig && device.mig->slot == *slot : !device.mig;
  }

 private:
  bool ends_with_bus(std::string_view bus) const {
    if (text.size() > bus.size() || !same_text(bus.substr(bus.size() - text.size()), text)) return false;
    return text.size() == bus.size() || bus[bus.size() - text.size() - 1] == ':';
  }

  /// How drivers before R470 called a MIG instance, and CUDA still understands.
  static std::string path_text(const Device& device) {
    if (!device.mig || !device.mig->gpu_instance || !device.mig->compute_instance) return "";
    return fmt::format("MIG-{}/{}/{}", device.mig->parent_uuid, *device.mig->gpu_instance,
                       *device.mig->compute_instance);
  }
};

/// The places that bear this name, a split GPU as itself. A whole UUID is not the beginning of
/// another.
std::vector<std::size_t> bearers(const Selector& selector, const Snapshot& snapshot) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    const Device& device = snapshot.devices[i];
    if (!selector.names(device)) continue;
    if (selector.is_uuid && same_text(device.uuid, selector.text)) return {i};
    indices.push_back(i);
  }
  return indices;
}

std::vector<std::size_t> with_instances(const std::vector<std::size_t>& indices, const Snapshot& snapshot) {
  std::vector<std::size_t> result;
  for (const std::size_t place : indices) {
    const Device& device = snapshot.devices[place];
    if (!is_split(device)) result.push_back(place);
    for (std::size_t i = 0; is_split(device) && i < snapshot.devices.size(); ++i) {
      const Device& other = snapshot.devices[i];
      if (other.mig && other.mig->parent_uuid == device.uuid) result.push_back(i);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::string what_there_is(const Snapshot& snapshot) {
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (!is_split(snapshot.devices[i])) usable.push_back(i);
  }
  if (usable.empty()) return "this machine has no device";
  return fmt::format("this machine has {}", labels_of(usable, snapshot));
}

// "0-3" is the indices 0 to 3; everything else stands for itself.
Result<std::vector<std::string>> devices_in(std::string_view one) {
  const std::size_t dash = one.find('-');
  const auto first = number_from_text<unsigned>(one.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? std::nullopt : number_from_text<unsigned>(one.substr(dash + 1));
  if (!first || !last) return std::vector<std::string>{std::string(one)};
  constexpr unsigned kMostDevices = 1024;
  if (*last < *first || *last - *first >= kMostDevices)
    return fail(ErrorCode::usage, "a range goes from the lower index to the higher: 0-3");
  std::vector<std::string> indices;
  for (unsigned index = *first; index <= *last; ++index) indices.push_back(std::to_string(index));
  return indices;
}

}  // namespace

bool is_index(std::string_view selector) {
  return number(trimmed(selector)).has_value();
}

std::vector<std::size_t> devices_named(std::string_view selector, const Snapshot& snapshot) {
  return with_instances(bearers(Selector(selector), snapshot), snapshot);
}

Result<std::vector<std::size_t>> resolve_selector(std::string_view text, const Snapshot& snapshot) {
  const Selector selector(text);
  if (!selector.index && !selector.is_uuid && !selector.is_pci) {
    return fail(ErrorCode::usage,
                "\"{}\" names no device: expected an index (3), a MIG instance (3:1), "
                "a UUID (GPU-…) or its beginning, or a PCI bus id; {}",
                printable(text), what_there_is(snapshot));
  }
  const std::vector<std::size_t> found = bearers(selector, snapshot);
  if (found.empty()) {
    return fail(ErrorCode::usage, "there is no device \"{}\": {}", printable(text), what_there_is(snapshot));
  }
  if (found.size() > 1) {
    return fail(ErrorCode::usage, "\"{}\" is the beginning of {} UUIDs (devices {}): write more of it",
                printable(text), found.size(), labels_of(found, snapshot));
  }
  std::vector<std::size_t> usable = with_instances(found, snapshot);
  if (usable.empty()) {
    return fail(ErrorCode::usage, "GPU {} is in MIG mode and has no instance: {}",
                label(snapshot.devices[found.front()]), what_there_is(snapshot));
  }
  return usable;
}

Result<std::vector<std::string>> uuids_named(const std::vector<std::string>& selectors,
                                             const Snapshot& snapshot) {
  std::vector<std::string> uuids;
  for (const std::string& selector : selectors) {
    BERTH_LET(const auto indices, resolve_selector(selector, snapshot));
    for (const std::size_t index : indices) uuids.push_back(snapshot.devices[index].uuid);
  }
  return uuids;
}

bool counts_devices(std::string_view selector) {
  return Selector(selector).index.has_value();
}

std::vector<std::string> as_uuids(const std::vector<std::string>& selectors, const Snapshot& snapshot) {
  std::vector<std::string> uuids;
  for (const std::string& selector : selectors) {
    const auto named =
        counts_devices(selector) ? bearers(Selector(selector), snapshot) : std::vector<std::size_t>{};
    const bool is_known = named.size() == 1 && !snapshot.devices[named.front()].uuid.empty();
    uuids.push_back(is_known ? snapshot.devices[named.front()].uuid : selector);
  }
  return uuids;
}

Result<std::vector<std::string>> selectors_from_text(std::string_view text) {
  std::vector<std::string> selectors;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    if (one.empty() || one.find_first_of(" \t") != std::string_view::npos) {
      return fail(ErrorCode::usage,
                  "must be indices or UUIDs with commas between: 0,1 or 0-3 or 3:1 or GPU-5a1c");
    }
    BERTH_LET(const auto named, devices_in(one));
    for (const std::string& each : named) {
      if (std::ranges::find(selectors, each) != selectors.end())
        return fail(ErrorCode::usage, "names {} twice", printable(each));
      selectors.push_back(each);
    }
    if (comma == std::string_view::npos) return selectors;
    text.remove_prefix(comma + 1);
  }
}

std::string labels_of(const std::vector<std::size_t>& indices, const Snapshot& snapshot) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    const Device& first = snapshot.devices[indices[i]];
    // Three and more GPUs in a row are a range.
    std::size_t run = 1;
    while (!first.mig && i + run < indices.size() && !snapshot.devices[indices[i + run]].mig &&
           snapshot.devices[indices[i + run]].index == first.index + run) {
      ++run;
    }
    if (!text.empty()) text += ", ";
    text += label(first);
    if (run >= 3) text += fmt::format("-{}", label(snapshot.devices[indices[i + run - 1]]));
    i += run >= 3 ? run : 1;
  }
  return text;
}

}  // namespace berth
