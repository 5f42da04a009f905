#include "berth/source/source_table.h"

#include <array>

#include "berth/source/amd/amd_reader.h"
#include "berth/source/nvidia_smi/nvidia_smi_reader.h"
#include "berth/source/nvml/nvml_reader.h"
#include "berth/source/proc/kernel_files.h"

namespace berth::source {
namespace {

using Made = std::unique_ptr<Reader>;

constexpr std::array kSources{
    SourceRow{"nvml", "nvidia", [](int) -> Made { return std::make_unique<nvml::NvmlReader>(); }},
    SourceRow{"nvidia-smi", "nvidia",
              [](int listener) -> Made { return std::make_unique<nvidia_smi::NvidiaSmiReader>(listener); }},
    SourceRow{"amd", "amd",
              [](int) -> Made { return std::make_unique<amd::AmdReader>(kernel_files::roots_in_force()); }}};

}  // namespace

std::span<const SourceRow> source_table() {
  return kSources;
}

}  // namespace berth::source
