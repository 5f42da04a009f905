#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "machine/process_life.h"
#include "smi/report.h"

namespace berth::sim {
namespace {

Card card_of(const World& world, unsigned index) {
  const Scenario& scenario = world.scenario();
  const Device& device = scenario.devices[index];
  Card card{index, &device, world.load(index), 0, 0, 0, 0};
  const bool shows_reserve = scenario.active_generation().reserve_is_used();
  card.reserved_mib = device.reserved_bytes / kMiB;
  card.total_mib = (device.memory_bytes - (shows_reserve ? 0 : device.reserved_bytes)) / kMiB;
  card.used_mib = card.load.used_bytes / kMiB;
  card.free_mib = (device.memory_bytes - device.reserved_bytes) / kMiB - card.used_mib;
  return card;
}

bool names(std::string_view text, unsigned index, const Device& device) {
  return text == std::to_string(index) || text == device.uuid || text == pci_text(device.pci, 8) ||
         text == pci_text(device.pci, 4) || text == device.serial;
}

}  // namespace

bool select_cards(const World& world, std::string_view select, Cards& cards) {
  const Scenario& scenario = world.scenario();
  cards.scenario = &scenario;
  if (select.empty()) {
    for (unsigned i = 0; i < scenario.devices.size(); ++i) cards.all.push_back(card_of(world, i));
    return true;
  }
  while (true) {
    const std::size_t comma = select.find(',');
    bool found = false;
    for (unsigned i = 0; i < scenario.devices.size() && !found; ++i)
      if (names(select.substr(0, comma), i, scenario.devices[i])) {
        cards.all.push_back(card_of(world, i));
        found = true;
      }
    if (!found) return false;
    if (comma == std::string_view::npos) return true;
    select.remove_prefix(comma + 1);
  }
}

std::string shown_program(const LiveProcess& process) {
  if (!process.name.empty()) return process.name;
  const std::string name = program_name(process.pid);
  return name.empty() ? "[Not Found]" : name;
}

std::string report_time() {
  const time_t now = time(nullptr);
  tm local{};
  localtime_r(&now, &local);
  char text[64];
  strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &local);
  return text;
}

std::string cuda_text(const Scenario& scenario) {
  const int cuda = scenario.cuda_version();
  return line("%d.%d", cuda / 1000, cuda % 1000 / 10);
}

const char* not_available(const Scenario& scenario) {
  return scenario.active_generation().branch < 470 ? "[Not Supported]" : "[N/A]";
}

std::string line(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char* text = nullptr;
  const int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  std::string result;
  if (length >= 0) result.assign(text, static_cast<std::size_t>(length));
  std::free(text);
  return result;
}

}  // namespace berth::sim
