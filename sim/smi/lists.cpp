// -L, topo -m and -q -x.
#include "smi/report.h"

namespace berth::sim {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string element(int depth, const char* name, const std::string& text) {
  return std::string(static_cast<std::size_t>(depth), '\t') + "<" + name + ">" + escaped(text) + "</" + name +
         ">\n";
}

std::string mib(std::uint64_t value) {
  return std::to_string(value) + " MiB";
}

std::string or_na(bool available, const std::string& text) {
  return available ? text : "N/A";
}

std::string process_elements(const Card& card) {
  std::string out = "\t\t<processes>\n";
  for (const LiveProcess& process : card.load.processes) {
    const Instance* instance =
        process.slot < 0 ? nullptr : &card.device->instances[static_cast<std::size_t>(process.slot)];
    const bool graphics = (process.kinds & kGraphics) != 0;
    const bool compute = (process.kinds & kCompute) != 0;
    out += "\t\t\t<process_info>\n";
    out +=
        element(4, "gpu_instance_id", instance != nullptr ? std::to_string(instance->gpu_instance) : "N/A");
    out += element(4, "compute_instance_id",
                   instance != nullptr ? std::to_string(instance->compute_instance) : "N/A");
    out += element(4, "pid", std::to_string(process.pid));
    out += element(4, "type", (process.kinds & kMps) != 0 ? "M+C" : !graphics ? "C" : compute ? "C+G" : "G");
    out += element(4, "process_name", shown_program(process));
    out += element(4, "used_memory",
                   process.used_bytes && card.device->supports(Reading::process_memory)
                       ? mib(*process.used_bytes / kMiB)
                       : "N/A");
    out += "\t\t\t</process_info>\n";
  }
  return out + "\t\t</processes>\n";
}

std::string mig_elements(const Card& card) {
  std::string out = "\t\t<mig_devices>\n";
  for (std::size_t slot = 0; slot < card.device->instances.size(); ++slot) {
    const Instance& instance = card.device->instances[slot];
    if (!instance.present) continue;
    const std::uint64_t used = card.load.slot_used_bytes[slot];
    out += "\t\t\t<mig_device>\n" + element(4, "index", std::to_string(slot)) +
           element(4, "gpu_instance_id", std::to_string(instance.gpu_instance)) +
           element(4, "compute_instance_id", std::to_string(instance.compute_instance)) +
           "\t\t\t\t<fb_memory_usage>\n" + element(5, "total", mib(instance.memory_bytes / kMiB)) +
           element(5, "reserved", mib(0)) + element(5, "used", mib(used / kMiB)) +
           element(5, "free", mib((instance.memory_bytes - used) / kMiB)) +
           "\t\t\t\t</fb_memory_usage>\n\t\t\t</mig_device>\n";
  }
  return out + "\t\t</mig_devices>\n";
}

std::string identity_elements(const Card& card) {
  const Device& device = *card.device;
  constexpr const char* kModes[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
  return element(2, "product_name", device.name) +
         element(2, "display_mode", device.display_connected ? "Enabled" : "Disabled") +
         element(2, "display_active", device.display_active ? "Enabled" : "Disabled") +
         element(2, "persistence_mode", device.persistence ? "Enabled" : "Disabled") + "\t\t<mig_mode>\n" +
         element(3, "current_mig",
                 or_na(device.supports(Reading::mig), device.mig_enabled ? "Enabled" : "Disabled")) +
         element(3, "pending_mig",
                 or_na(device.supports(Reading::mig), device.mig_enabled ? "Enabled" : "Disabled")) +
         "\t\t</mig_mode>\n" + mig_elements(card) +
         element(2, "serial", or_na(device.supports(Reading::serial), device.serial)) +
         element(2, "uuid", device.uuid) + element(2, "minor_number", std::to_string(device.minor)) +
         "\t\t<pci>\n" + element(3, "pci_bus_id", pci_text(device.pci, 8)) + "\t\t</pci>\n" +
         element(2, "compute_mode", kModes[device.compute_mode]);
}

std::string reading_elements(const Card& card) {
  const Device& device = *card.device;
  const bool memory = device.supports(Reading::memory);
  const bool utilization = device.supports(Reading::utilization) && !device.mig_enabled;
  const bool remapped = device.supports(Reading::remapped);
  return element(2, "fan_speed",
                 or_na(device.supports(Reading::fan), std::to_string(device.fan_percent) + " %")) +
         element(2, "performance_state", "P" + std::to_string(device.pstate)) + "\t\t<fb_memory_usage>\n" +
         element(3, "total", or_na(memory, mib(card.total_mib))) +
         element(3, "reserved", or_na(memory, mib(card.reserved_mib))) +
         element(3, "used", or_na(memory, mib(card.used_mib))) +
         element(3, "free", or_na(memory, mib(card.free_mib))) +
         "\t\t</fb_memory_usage>\n\t\t<remapped_rows>\n" +
         element(3, "remapped_row_pending", or_na(remapped, device.remap_pending ? "Yes" : "No")) +
         element(3, "remapped_row_failure", or_na(remapped, device.remap_failure ? "Yes" : "No")) +
         "\t\t</remapped_rows>\n\t\t<utilization>\n" +
         element(3, "gpu_util", or_na(utilization, std::to_string(device.utilization) + " %")) +
         element(3, "memory_util", or_na(utilization, std::to_string(device.memory_utilization) + " %")) +
         "\t\t</utilization>\n\t\t<temperature>\n" +
         element(3, "gpu_temp",
                 or_na(device.supports(Reading::temperature), std::to_string(device.temperature) + " C")) +
         "\t\t</temperature>\n\t\t<gpu_power_readings>\n" +
         element(3, "power_draw",
                 or_na(device.supports(Reading::power), line("%.2f W", device.power_mw / 1000.0))) +
         element(
             3, "current_power_limit",
             or_na(device.supports(Reading::power_limit), line("%.2f W", device.power_limit_mw / 1000.0))) +
         "\t\t</gpu_power_readings>\n";
}

}  // namespace

std::string device_list(const Cards& cards) {
  std::string out;
  for (const Card& card : cards.all) {
    out += line("GPU %u: %s (UUID: %s)\n", card.index, card.device->name.c_str(), card.device->uuid.c_str());
    for (std::size_t slot = 0; slot < card.device->instances.size(); ++slot)
      if (const Instance& instance = card.device->instances[slot]; instance.present)
        out += line("  MIG %-12sDevice %2zu: (UUID: %s)\n", instance.profile.c_str(), slot,
                    instance.uuid.c_str());
  }
  return out;
}

std::string topology_matrix(const Cards& cards) {
  constexpr const char* kLevels[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
  std::string out = "\t";
  for (const Card& card : cards.all) out += line("GPU%u\t", card.index);
  out += "CPU Affinity\tNUMA Affinity\n";
  for (const Card& a : cards.all) {
    out += line("GPU%u\t", a.index);
    for (const Card& b : cards.all) {
      const unsigned links = a.index == b.index ? 0 : cards.scenario->nvlinks_between(a.index, b.index);
      if (a.index == b.index)
        out += " X \t";
      else if (links != 0)
        out += line("NV%u\t", links);
      else
        out += line("%s\t", kLevels[cards.scenario->pcie_level(a.index, b.index) / 10 % 6]);
    }
    out += line("N/A\t%u\n", a.device->numa_node);
  }
  return out;
}

std::string xml_report(const Cards& cards) {
  std::string out =
      "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "
      "\"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n";
  out += element(1, "timestamp", report_time()) +
         element(1, "driver_version", cards.scenario->driver_version()) +
         element(1, "cuda_version", cuda_text(*cards.scenario)) +
         element(1, "attached_gpus", std::to_string(cards.all.size()));
  for (const Card& card : cards.all)
    out += "\t<gpu id=\"" + pci_text(card.device->pci, 8) + "\">\n" + identity_elements(card) +
           reading_elements(card) + process_elements(card) + "\t</gpu>\n";
  return out + "</nvidia_smi_log>\n";
}

}  // namespace berth::sim
