#include "berth/device/vendor.h"

#include <algorithm>
#include <array>

#include "berth/device/device.h"

namespace berth {
namespace {

using Words = std::string_view;

// "CUDA C++ Programming Guide", environment variables; `nvidia-smi -L` for the
// UUIDs.
constexpr std::array<Words, 2> kNvidiaUuids{"GPU-", "MIG-"};
constexpr std::array<Words, 3> kNvidiaFiles{"nvidia#", "nvidiactl", "nvidia-uvm"};

// RvdFilter of ROCR-Runtime (amd_filter_device.cpp): 16 hexadecimal digits,
// indices by strtol with base 0, both in one list, which ends at the first
// entry that is invalid or was there before.
constexpr std::array<Words, 1> kAmdUuids{"GPU-"};
// "GPU isolation techniques" of ROCm's documentation: HIP reads all three, OpenCL the second.
constexpr std::array<Words, 3> kAmdInner{"HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"};
constexpr std::array<Words, 2> kAmdFiles{"kfd", "dri/renderD#"};

constexpr std::array kVendors{
    Vendor{.name = "nvidia",
           .maker = "NVIDIA",
           .runtime = "CUDA",
           .mask_variable = "CUDA_VISIBLE_DEVICES",
           .order_variable = "CUDA_DEVICE_ORDER",
           .order_value = "PCI_BUS_ID",
           .uuid_prefixes = kNvidiaUuids,
           .uuid_digits = 0,
           .mask_mixes = false,
           .twice_hides_all = true,
           .indices_are_c_numbers = false,
           .tool = "nvidia-smi",
           .reset_command = "sudo nvidia-smi -r -i",
           .persistence_command = "sudo systemctl enable --now nvidia-persistenced, or sudo "
                                  "nvidia-smi -pm 1",
           .compute_mode_command = "sudo nvidia-smi -c 0 -i INDEX",
           .container_help = "docker run --gpus all",
           .module = "nvidia",
           .share_limit_variable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
           .processor_limit_variable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
           .one_version = true,
           .log_pattern = "xid",
           .tells_all_users = true,
           .runs_cuda = true,
           .device_files = kNvidiaFiles},
    Vendor{.name = "amd",
           .maker = "AMD",
           .runtime = "ROCm",
           .mask_variable = "ROCR_VISIBLE_DEVICES",
           .order_variable = "",
           .order_value = "",
           .inner_variables = kAmdInner,
           .uuid_prefixes = kAmdUuids,
           .uuid_digits = 16,
           .mask_mixes = true,
           .twice_hides_all = false,
           .indices_are_c_numbers = true,
           .tool = "rocm-smi",
           .reset_command = "sudo rocm-smi --gpureset -d",
           .persistence_command = "",
           .compute_mode_command = "",
           .container_help = "docker run --device /dev/kfd --device /dev/dri",
           .module = "amdgpu",
           .one_version = false,
           .log_pattern = "amdgpu",
           // Much of it is read from /proc, where root sees more.
           .tells_all_users = false,
           .device_files = kAmdFiles}};

}  // namespace

std::span<const Vendor> vendors() {
  return kVendors;
}

Vendor vendor_named(std::string_view name) {
  const auto* found = std::ranges::find(kVendors, name, &Vendor::name);
  return found != kVendors.end() ? *found : Vendor{.name = name, .maker = name};
}

Vendor vendor_of(const Device& device) {
  return vendor_named(device.vendor);
}

std::string_view without_maker(std::string_view device_name) {
  for (const Vendor& vendor : kVendors) {
    const std::size_t length = vendor.maker.size();
    if (device_name.starts_with(vendor.maker) && device_name.substr(length).starts_with(' '))
      return device_name.substr(length + 1);
  }
  return device_name;
}

}  // namespace berth
