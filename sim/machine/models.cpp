#include "machine/models.h"

#include <cctype>
#include <iterator>

namespace berth::sim {
namespace {

// Architectures: 2 Kepler, 4 Pascal, 5 Volta, 6 Turing, 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell.
// Brands: 1 Quadro, 2 Tesla, 5 GeForce, 6 Titan, 13 NVIDIA RTX, 14 NVIDIA, 15 GeForce RTX.
// clang-format off
constexpr Model kModels[] = {
  // key, name, MiB, reserved, W, idle W, idle C, cc, arch, brand, PCI id, SMs, MHz, memory MHz,
  // PCIe, fan ecc serial mig, links, fabric, speed
  {"B200", "NVIDIA B200", 183359, 924, 1000, 145, 31, 10, 0, 10, 14, 0x2901, 148, 1965, 3996, 5, false, true, true, true, 18, Fabric::switched, 1000},
  {"H200", "NVIDIA H200", 143771, 617, 700, 76, 29, 9, 0, 9, 14, 0x2335, 132, 1980, 3201, 5, false, true, true, true, 18, Fabric::switched, 910},
  {"H100", "NVIDIA H100 80GB HBM3", 81559, 551, 700, 69, 30, 9, 0, 9, 14, 0x2330, 132, 1980, 2619, 5, false, true, true, true, 18, Fabric::switched, 900},
  {"H100-NVL", "NVIDIA H100 NVL", 95830, 575, 400, 61, 33, 9, 0, 9, 14, 0x2321, 132, 1785, 2619, 5, false, true, true, true, 12, Fabric::bridge, 890},
  {"H100-PCIe", "NVIDIA H100 PCIe", 81559, 551, 350, 46, 34, 9, 0, 9, 14, 0x2331, 114, 1755, 1593, 5, false, true, true, true, 12, Fabric::bridge, 880},
  {"GH200", "NVIDIA GH200 480GB", 97871, 582, 900, 88, 30, 9, 0, 9, 14, 0x2342, 132, 1980, 2619, 5, false, true, true, true, 0, Fabric::none, 905},
  {"A100-80", "NVIDIA A100-SXM4-80GB", 81920, 669, 400, 61, 31, 8, 0, 7, 14, 0x20B2, 108, 1410, 1593, 4, false, true, true, true, 12, Fabric::switched, 710},
  {"A100", "NVIDIA A100-SXM4-40GB", 40960, 424, 400, 52, 30, 8, 0, 7, 14, 0x20B0, 108, 1410, 1215, 4, false, true, true, true, 12, Fabric::switched, 700},
  {"A100-PCIe-80", "NVIDIA A100 80GB PCIe", 81920, 669, 300, 44, 33, 8, 0, 7, 14, 0x20B5, 108, 1410, 1512, 4, false, true, true, true, 12, Fabric::bridge, 705},
  {"A100-PCIe", "NVIDIA A100-PCIE-40GB", 40960, 424, 250, 33, 32, 8, 0, 7, 14, 0x20F1, 108, 1410, 1215, 4, false, true, true, true, 12, Fabric::bridge, 695},
  {"A30", "NVIDIA A30", 24576, 314, 165, 29, 33, 8, 0, 7, 14, 0x20B7, 56, 1440, 1215, 4, false, true, true, true, 4, Fabric::bridge, 500},
  {"L40S", "NVIDIA L40S", 46068, 569, 350, 35, 32, 8, 9, 8, 14, 0x26B9, 142, 2520, 9001, 4, false, true, true, false, 0, Fabric::none, 760},
  {"L4", "NVIDIA L4", 23034, 448, 72, 16, 38, 8, 9, 8, 14, 0x27B8, 58, 2040, 6251, 4, false, true, true, false, 0, Fabric::none, 450},
  {"A40", "NVIDIA A40", 46068, 442, 300, 32, 34, 8, 6, 7, 14, 0x2235, 84, 1740, 7251, 4, false, true, true, false, 4, Fabric::bridge, 600},
  {"A10", "NVIDIA A10", 23028, 296, 150, 21, 36, 8, 6, 7, 14, 0x2236, 72, 1695, 6251, 4, false, true, true, false, 0, Fabric::none, 520},
  {"A6000", "NVIDIA RTX A6000", 49140, 455, 300, 22, 33, 8, 6, 7, 13, 0x2230, 84, 2100, 8001, 4, true, true, true, false, 4, Fabric::bridge, 610},
  {"6000Ada", "NVIDIA RTX 6000 Ada Generation", 49140, 573, 300, 21, 34, 8, 9, 8, 13, 0x26B1, 142, 3105, 10001, 4, true, true, true, false, 0, Fabric::none, 770},
  {"5090", "NVIDIA GeForce RTX 5090", 32607, 491, 575, 17, 33, 12, 0, 10, 15, 0x2B85, 170, 3090, 14001, 5, true, false, false, false, 0, Fabric::none, 850},
  {"4090", "NVIDIA GeForce RTX 4090", 24564, 419, 450, 18, 34, 8, 9, 8, 15, 0x2684, 128, 3105, 10501, 4, true, false, false, false, 0, Fabric::none, 780},
  {"3090", "NVIDIA GeForce RTX 3090", 24576, 308, 350, 24, 35, 8, 6, 7, 15, 0x2204, 82, 2100, 9751, 4, true, false, false, false, 4, Fabric::bridge, 590},
  {"3080", "NVIDIA GeForce RTX 3080", 10240, 226, 320, 20, 36, 8, 6, 7, 15, 0x2206, 68, 2100, 9501, 4, true, false, false, false, 0, Fabric::none, 560},
  {"2080Ti", "NVIDIA GeForce RTX 2080 Ti", 11264, 245, 250, 19, 35, 7, 5, 6, 15, 0x1E07, 68, 2100, 7000, 3, true, false, false, false, 2, Fabric::bridge, 430},
  {"1080Ti", "NVIDIA GeForce GTX 1080 Ti", 11264, 86, 250, 10, 29, 6, 1, 4, 5, 0x1B06, 28, 1911, 5505, 3, true, false, false, false, 0, Fabric::none, 300},
  {"1070", "NVIDIA GeForce GTX 1070", 8192, 73, 151, 8, 32, 6, 1, 4, 5, 0x1B81, 15, 1911, 4004, 3, true, false, false, false, 0, Fabric::none, 220},
  {"T4", "Tesla T4", 15360, 251, 70, 9, 35, 7, 5, 6, 2, 0x1EB8, 40, 1590, 5001, 3, false, true, true, false, 0, Fabric::none, 310},
  {"V100", "Tesla V100-SXM2-32GB", 32768, 258, 300, 42, 33, 7, 0, 5, 2, 0x1DB5, 80, 1530, 877, 3, false, true, true, false, 6, Fabric::mesh, 420},
  {"V100-16", "Tesla V100-SXM2-16GB", 16384, 224, 300, 42, 33, 7, 0, 5, 2, 0x1DB1, 80, 1530, 877, 3, false, true, true, false, 6, Fabric::mesh, 415},
  {"P100", "Tesla P100-PCIE-16GB", 16384, 104, 250, 27, 32, 6, 0, 4, 2, 0x15F8, 56, 1328, 715, 3, false, true, true, false, 0, Fabric::none, 280},
  {"K80", "Tesla K80", 11507, 66, 149, 26, 34, 3, 7, 2, 2, 0x102D, 13, 875, 2505, 3, false, true, true, false, 0, Fabric::none, 100},
  {"GB10", "NVIDIA GB10", 0, 0, 140, 5, 38, 12, 1, 10, 14, 0x2E12, 48, 2418, 0, 5, false, false, false, false, 0, Fabric::none, 440, Memory::unified},
};
// clang-format on

bool same_key(std::string_view a, std::string_view b) {
  auto skip = [](std::string_view& text) {
    while (!text.empty() && (text[0] == '-' || text[0] == '_' || text[0] == ' ')) text.remove_prefix(1);
  };
  for (;;) {
    skip(a);
    skip(b);
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    if (std::tolower(static_cast<unsigned char>(a[0])) != std::tolower(static_cast<unsigned char>(b[0])))
      return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
}

}  // namespace

const Model* model_named(std::string_view key) {
  for (const Model& model : kModels)
    if (same_key(key, model.key)) return &model;
  return nullptr;
}

bool names_mi300x(std::string_view key) {
  return same_key(key, kMi300x.key);
}

const Model* models(std::size_t& count) {
  count = std::size(kModels);
  return kModels;
}

}  // namespace berth::sim
