#include "berth/device/device.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"

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

bool read_value(std::string_view text, DeviceState& state) {
  state = from_word<DeviceState>(text).value_or(DeviceState::failed);
  return true;
}
bool read_value(std::string_view text, Reading<ComputeMode>& mode) {
  mode = from_word<ComputeMode>(text);
  return true;
}
bool read_value(std::string_view text, MemoryKind& kind) {
  kind = from_word<MemoryKind>(text).value_or(MemoryKind::dedicated);
  return true;
}

bool is_split(const Device& device) {
  return !device.mig && device.mig_enabled.value_or(false);
}

std::string label(const Device& device) {
  std::string text = std::to_string(device.index);
  if (device.mig) text += ':' + std::to_string(device.mig->slot);
  return text;
}

Result<void> check_label(std::string_view label) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/+@";
  if (!label.empty() && label.size() <= kLongest && label.find_first_not_of(kCharacters) == label.npos)
    return {};
  return fail(ErrorCode::usage, "'{}' must be of 1 to {} letters, digits and . _ - : / + @",
              printable(label.substr(0, kLongest)), kLongest);
}

ReadingSet readings_for_listing() {
  return ReadingKind::name | ReadingKind::memory | ReadingKind::processes | ReadingKind::process_details |
         ReadingKind::utilization | ReadingKind::power | ReadingKind::temperature | ReadingKind::clocks |
         ReadingKind::fan | ReadingKind::compute_mode | ReadingKind::mig | ReadingKind::health |
         ReadingKind::capability | ReadingKind::pci | ReadingKind::modes | ReadingKind::driver |
         ReadingKind::host | ReadingKind::xid;
}

const Device* find_device(const Snapshot& snapshot, std::string_view uuid) {
  const auto found = std::ranges::find(snapshot.devices, uuid, &Device::uuid);
  return found == snapshot.devices.end() ? nullptr : &*found;
}

std::string device_labels(const std::vector<std::string>& uuids, const Snapshot& snapshot) {
  std::string labels;
  for (const std::string& uuid : uuids) {
    const Device* device = find_device(snapshot, uuid);
    labels += (labels.empty() ? "" : ",") + (device == nullptr ? "?" : label(*device));
  }
  return labels;
}

}  // namespace berth
