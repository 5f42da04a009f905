#include <algorithm>

#include "machine/parse_parts.h"

namespace berth::sim {
namespace {

constexpr std::string_view kLevels[] = {"INTERNAL", "PIX", "PXB", "PHB", "NODE", "SYS"};

// The hybrid cube mesh of eight devices with six links each (DGX-1 with V100).
constexpr unsigned kCubeMesh[][3] = {
    {0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 1},
    {2, 6, 2}, {3, 7, 2}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 1},
};

void connect(Scenario& scenario, unsigned a, unsigned b, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    scenario.devices[a].links.push_back({true, Remote::gpu, b});
    scenario.devices[b].links.push_back({true, Remote::gpu, a});
  }
}

void connect_switches(Device& device) {
  const unsigned switches = device.model.architecture >= 9 ? 4 : 6;
  for (unsigned i = 0; i < device.model.nvlinks; ++i)
    device.links.push_back({true, Remote::switched, i % switches});
}

void connect_pairs(Scenario& scenario) {
  for (unsigned i = 0; i + 1 < scenario.devices.size(); i += 2)
    if (scenario.devices[i].model.nvlinks != 0 && scenario.devices[i + 1].model.nvlinks != 0)
      connect(scenario, i, i + 1,
              std::min(scenario.devices[i].model.nvlinks, scenario.devices[i + 1].model.nvlinks));
}

void connect_mesh(Scenario& scenario) {
  if (scenario.devices.size() < 8) return;
  for (const auto& edge : kCubeMesh) connect(scenario, edge[0], edge[1], edge[2]);
}

// What a machine with these boards has unless the file says otherwise: switches for the boards that
// are only sold with them, the cube mesh for eight V100, no bridges (they are bought apart).
void connect_by_model(Scenario& scenario) {
  const bool mesh =
      scenario.devices.size() == 8 && std::ranges::all_of(scenario.devices, [](const Device& device) {
        return device.model.fabric == Fabric::mesh;
      });
  if (mesh) connect_mesh(scenario);
  for (Device& device : scenario.devices)
    if (device.model.fabric == Fabric::switched) connect_switches(device);
}

void parse_pair(Table& table, const Scenario& scenario, unsigned& a, unsigned& b) {
  const auto most = static_cast<std::int64_t>(scenario.devices.size()) - 1;
  const auto first = table.integer("a", 0, most);
  const auto second = table.integer("b", 0, most);
  if (!first || !second || *first == *second) {
    table.wrong("\"a\" and \"b\" must be the indices of two devices");
    return;
  }
  a = static_cast<unsigned>(*first);
  b = static_cast<unsigned>(*second);
}

void parse_links(Table& top, Problems& problems, Scenario& scenario) {
  for (const toml::table* source : top.tables("link")) {
    Table table(*source, problems, "[[link]]");
    unsigned a = 0, b = 0;
    parse_pair(table, scenario, a, b);
    const auto count = table.integer("nvlinks", 1, 18).value_or(1);
    table.finish();
    if (!problems.any()) connect(scenario, a, b, static_cast<unsigned>(count));
  }
  for (const toml::table* source : top.tables("pcie")) {
    Table table(*source, problems, "[[pcie]]");
    PcieLevel pair;
    parse_pair(table, scenario, pair.a, pair.b);
    const auto level =
        table.one_of("level", {kLevels[0], kLevels[1], kLevels[2], kLevels[3], kLevels[4], kLevels[5]});
    if (!level) table.wrong("[[pcie]] needs \"level\"");
    pair.level = level.value_or(5) * 10;
    table.finish();
    scenario.pcie.push_back(pair);
  }
}

}  // namespace

void parse_topology(Table& top, Problems& problems, Scenario& scenario) {
  const auto kind = top.one_of("topology", {"nvswitch", "pcie", "bridges", "dgx1"});
  if (!kind && !top.has("link")) connect_by_model(scenario);
  if (kind && *kind == 0)
    for (Device& device : scenario.devices) connect_switches(device);
  if (kind && *kind == 2) connect_pairs(scenario);
  if (kind && *kind == 3) {
    if (scenario.devices.size() != 8) top.wrong("topology", "\"dgx1\" needs 8 devices");
    connect_mesh(scenario);
  }
  parse_links(top, problems, scenario);
  for (Device& device : scenario.devices)
    if (device.links.size() > 36) top.wrong("link", "a device has at most 36 links");
}

}  // namespace berth::sim
