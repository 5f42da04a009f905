// The pieces of parse_scenario(), one file each.
#pragma once

#include "machine/scenario.h"
#include "machine/table.h"

namespace berth::sim {

/// Appends the devices of one [[device]] table (`count` of them).
void parse_device(const toml::table& source, Problems& problems, const Generation& generation,
                  std::vector<Device>& devices);
void parse_instances(Table& table, const Generation& generation, Device& device);
void parse_processes(Table& table, Problems& problems, Device& device);
void parse_fault(const toml::table& source, Problems& problems, Fault& fault);
/// `topology`, [[link]] and [[pcie]].
void parse_topology(Table& top, Problems& problems, Scenario& scenario);

}  // namespace berth::sim
