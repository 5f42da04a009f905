// -q: the readings of each device, a label and a value on a line.
#include "smi/report.h"

namespace berth::sim {
namespace {

/// The colon stands in the same column at every depth.
std::string entry(int depth, const char* label, const std::string& value) {
  const int indent = depth * 4;
  return line("%*s%-*s: %s\n", indent, "", 42 - indent, label, value.c_str());
}

std::string heading(int depth, const char* label) {
  return line("%*s%s\n", depth * 4, "", label);
}

std::string mib_text(std::uint64_t value) {
  return std::to_string(value) + " MiB";
}

const char* enabled_text(bool on) {
  return on ? "Enabled" : "Disabled";
}

std::string identity(const Card& card) {
  const Device& device = *card.device;
  const std::string mig = device.supports(Reading::mig) ? enabled_text(device.mig_enabled) : "N/A";
  return entry(1, "Product Name", device.name) +
         entry(1, "Display Mode", enabled_text(device.display_connected)) +
         entry(1, "Display Active", enabled_text(device.display_active)) +
         entry(1, "Persistence Mode", enabled_text(device.persistence)) + heading(1, "MIG Mode") +
         entry(2, "Current", mig) + entry(2, "Pending", mig) +
         entry(1, "Serial Number", device.supports(Reading::serial) ? device.serial : "N/A") +
         entry(1, "GPU UUID", device.uuid) + entry(1, "Minor Number", std::to_string(device.minor)) +
         heading(1, "PCI") + entry(2, "Bus Id", pci_text(device.pci, 8));
}

std::string readings(const Card& card) {
  const Device& device = *card.device;
  const auto or_na = [&](Reading reading, const std::string& text) {
    return device.supports(reading) ? text : std::string("N/A");
  };
  return entry(1, "Fan Speed", or_na(Reading::fan, std::to_string(device.fan_percent) + " %")) +
         entry(1, "Performance State", "P" + std::to_string(device.pstate)) + heading(1, "FB Memory Usage") +
         entry(2, "Total", or_na(Reading::memory, mib_text(card.total_mib))) +
         entry(2, "Reserved", or_na(Reading::memory, mib_text(card.reserved_mib))) +
         entry(2, "Used", or_na(Reading::memory, mib_text(card.used_mib))) +
         entry(2, "Free", or_na(Reading::memory, mib_text(card.free_mib)));
}

std::string processes(const Card& card) {
  if (card.load.processes.empty()) return entry(1, "Processes", "None");
  std::string out = heading(1, "Processes");
  for (const LiveProcess& process : card.load.processes) {
    const bool graphics = (process.kinds & kGraphics) != 0;
    const bool compute = (process.kinds & kCompute) != 0;
    const bool told = process.used_bytes && card.device->supports(Reading::process_memory);
    out += entry(2, "Process ID", std::to_string(process.pid)) +
           entry(3, "Type",
                 (process.kinds & kMps) != 0 ? "M+C"
                 : !graphics                 ? "C"
                 : compute                   ? "C+G"
                                             : "G") +
           entry(3, "Name", shown_program(process)) +
           entry(3, "Used GPU Memory", told ? mib_text(*process.used_bytes / kMiB) : "N/A");
  }
  return out;
}

}  // namespace

std::string text_report(const Cards& cards) {
  std::string out = "\n==============NVSMI LOG==============\n\n";
  out += entry(0, "Timestamp", report_time()) + entry(0, "Driver Version", cards.scenario->driver_version()) +
         entry(0, "CUDA Version", cuda_text(*cards.scenario)) + "\n" +
         entry(0, "Attached GPUs", std::to_string(cards.all.size()));
  for (const Card& card : cards.all) {
    out += "GPU " + pci_text(card.device->pci, 8) + "\n" + identity(card) + readings(card) + processes(card) +
           "\n";
  }
  return out;
}

}  // namespace berth::sim
