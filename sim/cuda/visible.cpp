#include "cuda/visible.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace berth::sim {
namespace {

bool usable(const Device& device) {
  return !device.lost && device.handle_result == 0;
}

std::vector<const Device*> in_order(const Scenario& scenario, const char* order) {
  std::vector<const Device*> devices;
  for (const Device& device : scenario.devices)
    if (usable(device)) devices.push_back(&device);
  if (order != nullptr && std::string_view(order) == "PCI_BUS_ID")
    std::ranges::sort(devices, [](const Device* a, const Device* b) {
      return std::pair(a->pci.domain, a->pci.bus) < std::pair(b->pci.domain, b->pci.bus);
    });
  else
    std::ranges::sort(devices, [](const Device* a, const Device* b) {
      return a->model.speed != b->model.speed ? a->model.speed > b->model.speed : a < b;
    });
  return devices;
}

// A device in MIG mode is no CUDA device; its first instance is one if there is nothing else.
std::vector<Visible> all_ordinals(const std::vector<const Device*>& devices) {
  std::vector<Visible> ordinals;
  for (const Device* device : devices)
    if (!device->mig_enabled) ordinals.push_back({device->uuid, -1});
  if (!ordinals.empty()) return ordinals;
  for (const Device* device : devices)
    for (std::size_t slot = 0; slot < device->instances.size(); ++slot)
      if (device->instances[slot].present) return {{device->uuid, static_cast<int>(slot)}};
  return {};
}

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && same_text(text.substr(0, prefix.size()), prefix);
}

std::string old_form(const Device& device, const Instance& instance) {
  return "MIG-" + device.uuid + "/" + std::to_string(instance.gpu_instance) + "/" +
         std::to_string(instance.compute_instance);
}

std::optional<Visible> find_instance(const std::vector<const Device*>& devices, std::string_view entry) {
  for (const Device* device : devices)
    for (std::size_t slot = 0; slot < device->instances.size(); ++slot) {
      const Instance& instance = device->instances[slot];
      if (instance.present &&
          (same_text(instance.uuid, entry) || same_text(old_form(*device, instance), entry)))
        return Visible{device->uuid, static_cast<int>(slot)};
    }
  return std::nullopt;
}

std::optional<Visible> find_device(const std::vector<const Device*>& devices, std::string_view entry) {
  std::optional<Visible> found;
  for (const Device* device : devices) {
    if (device->mig_enabled || !begins_with(device->uuid, entry)) continue;
    if (found) return std::nullopt;  // a prefix must be unique
    found = Visible{device->uuid, -1};
  }
  return found;
}

std::optional<Visible> find_entry(const std::vector<const Device*>& devices,
                                  const std::vector<Visible>& ordinals, std::string_view entry) {
  while (!entry.empty() && std::isspace(static_cast<unsigned char>(entry.front())) != 0)
    entry.remove_prefix(1);
  while (!entry.empty() && std::isspace(static_cast<unsigned char>(entry.back())) != 0)
    entry.remove_suffix(1);
  if (begins_with(entry, "MIG-")) return find_instance(devices, entry);
  if (begins_with(entry, "GPU-")) return find_device(devices, entry);
  if (entry.empty() || std::isdigit(static_cast<unsigned char>(entry.front())) == 0) return std::nullopt;
  const unsigned long ordinal = std::strtoul(std::string(entry).c_str(), nullptr, 10);
  if (ordinal >= ordinals.size()) return std::nullopt;
  return ordinals[ordinal];
}

}  // namespace

std::vector<Visible> visible_devices(const Scenario& scenario, const char* visible, const char* order) {
  const std::vector<const Device*> devices = in_order(scenario, order);
  const std::vector<Visible> ordinals = all_ordinals(devices);
  if (visible == nullptr) return ordinals;
  std::vector<Visible> chosen;
  std::string_view rest = visible;
  for (bool more = !rest.empty(); more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::optional<Visible> found = find_entry(devices, ordinals, rest.substr(0, comma));
    if (!found) break;
    if (std::ranges::any_of(chosen,
                            [&](const Visible& v) { return v.uuid == found->uuid && v.slot == found->slot; }))
      return {};
    if (found->slot >= 0) return chosen.empty() ? std::vector{*found} : chosen;
    chosen.push_back(*found);
    if (more) rest.remove_prefix(comma + 1);
  }
  return chosen;
}

}  // namespace berth::sim
