// What the driver says about real products. Sizes are those that a current driver reports, not the
// ones on the box.
#pragma once

#include <cstddef>
#include <string_view>

namespace berth::sim {

enum class Memory { own, unified };
enum class Fabric { none, bridge, switched, mesh };

struct Model {
  const char* key = "";  // in scenarios and on the command line
  const char* name = "";
  unsigned memory_mib = 0;
  unsigned reserved_mib = 0;
  unsigned power_limit_w = 0;
  unsigned idle_power_w = 0;
  unsigned idle_temperature = 0;
  int major = 0;
  int minor = 0;
  unsigned architecture = 0;  // as nvmlDeviceArchitecture_t
  unsigned brand = 0;         // as nvmlBrandType_t
  unsigned pci_device = 0;
  unsigned multiprocessors = 0;
  unsigned max_sm_mhz = 0;
  unsigned max_memory_mhz = 0;
  unsigned pcie_generation = 0;
  bool fan = false;
  bool ecc = false;
  bool serial = false;
  bool mig = false;
  unsigned nvlinks = 0;
  Fabric fabric = Fabric::none;
  unsigned speed = 0;  // order of CUDA's FASTEST_FIRST
  Memory memory = Memory::own;
};

/// What amdgpu says about the one card of AMD's that is played.
struct AmdModel {
  const char* key;
  const char* name;
  unsigned memory_mib;
  unsigned compute_units;
  unsigned target_version;  // 90402 is gfx942
  unsigned pci_device;
  unsigned power_limit_w;
  unsigned idle_power_w;
  unsigned idle_temperature;
  unsigned max_mhz;
};
inline constexpr AmdModel kMi300x{
    "MI300X", "AMD Instinct MI300X OAM", 196592, 304, 90402, 0x74A1, 750, 140, 42, 2100};
bool names_mi300x(std::string_view key);

/// nullptr if unknown. Case does not count, nor do '-', '_' and ' '.
const Model* model_named(std::string_view key);
const Model* models(std::size_t& count);

}  // namespace berth::sim
