#include "machine/scenario.h"

#include <algorithm>
#include <cstdio>

namespace berth::sim {
namespace {

struct ReadingName {
  const char* name;
  Reading reading;
};

constexpr ReadingName kReadings[] = {
    {"accounting", Reading::accounting},
    {"bar1", Reading::bar1},
    {"clocks", Reading::clocks},
    {"compute_capability", Reading::compute_capability},
    {"compute_mode", Reading::compute_mode},
    {"display", Reading::display},
    {"ecc", Reading::ecc},
    {"encoder", Reading::encoder},
    {"energy", Reading::energy},
    {"events", Reading::events},
    {"fan", Reading::fan},
    {"memory", Reading::memory},
    {"mig", Reading::mig},
    {"minor", Reading::minor},
    {"name", Reading::name},
    {"nvlink", Reading::nvlink},
    {"pcie", Reading::pcie},
    {"persistence", Reading::persistence},
    {"power", Reading::power},
    {"power_limit", Reading::power_limit},
    {"process_memory", Reading::process_memory},
    {"processes", Reading::processes},
    {"pstate", Reading::pstate},
    {"remapped", Reading::remapped},
    {"retired", Reading::retired},
    {"serial", Reading::serial},
    {"temperature", Reading::temperature},
    {"throttle", Reading::throttle},
    {"topology", Reading::topology},
    {"utilization", Reading::utilization},
    {"uuid", Reading::uuid},
};

unsigned hex_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 16;
}

unsigned switched_links(const Device& device) {
  return static_cast<unsigned>(std::ranges::count_if(
      device.links, [](const Link& link) { return link.active && link.remote == Remote::switched; }));
}

}  // namespace

std::optional<Reading> reading_named(std::string_view name) {
  for (const ReadingName& entry : kReadings)
    if (name == entry.name) return entry.reading;
  return std::nullopt;
}

const Generation& Scenario::active_generation() const {
  if (const Generation* built = generation_named(kBuiltGeneration)) return *built;
  if (const Generation* named = generation_named(generation)) return *named;
  if (const Generation* of_driver = generation_of_driver(driver)) return *of_driver;
  return default_generation();
}

std::string Scenario::driver_version() const {
  return driver.empty() ? active_generation().driver : driver;
}

int Scenario::cuda_version() const {
  return cuda != 0 ? cuda : active_generation().cuda;
}

unsigned Scenario::pcie_level(unsigned a, unsigned b) const {
  if (a == b) return 0;
  for (const PcieLevel& pair : pcie)
    if ((pair.a == a && pair.b == b) || (pair.a == b && pair.b == a)) return pair.level;
  const bool same_node = devices[a].numa_node == devices[b].numa_node;
  if (!same_node) return 50;
  return devices[a].model.fabric == Fabric::switched && devices[b].model.fabric == Fabric::switched ? 40 : 30;
}

unsigned Scenario::nvlinks_between(unsigned a, unsigned b) const {
  auto direct = static_cast<unsigned>(std::ranges::count_if(devices[a].links, [b](const Link& link) {
    return link.active && link.remote == Remote::gpu && link.peer == b;
  }));
  if (direct != 0) return direct;
  return std::min(switched_links(devices[a]), switched_links(devices[b]));
}

std::string pci_text(const PciAddress& address, int domain_digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%0*X:%02X:%02X.0", domain_digits, address.domain, address.bus,
                address.device);
  return text;
}

PciAddress switch_address(unsigned number) {
  return {0xFFFE, 0x80 + number, 0};
}

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;  // FNV alone leaves neighbours alike
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
  return hash ^ (hash >> 31);
}

std::string uuid_text(std::string_view seed) {
  const std::uint64_t high = hash_text(seed, 1);
  const std::uint64_t low = hash_text(seed, 2);
  char text[40];
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-8%03x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xFFFF), static_cast<unsigned>(high & 0xFFF),
                static_cast<unsigned>(low >> 52), static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFULL));
  return text;
}

void uuid_bytes(std::string_view text, unsigned char out[16]) {
  std::fill_n(out, 16, static_cast<unsigned char>(0));
  if (const std::size_t prefix = text.find('-'); prefix != std::string_view::npos)
    text.remove_prefix(prefix + 1);
  unsigned digits = 0;
  for (char c : text) {
    const unsigned value = hex_value(c);
    if (value > 15) continue;
    if (digits == 32) break;
    out[digits / 2] = static_cast<unsigned char>(out[digits / 2] * 16U + value);
    ++digits;
  }
}

}  // namespace berth::sim
