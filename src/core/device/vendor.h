#pragma once

#include <span>
#include <string_view>

namespace berth {

struct Device;

/// The vendor of devices, and what that means for a job on them. A request gets devices of one
/// vendor.
struct Vendor {
  std::string_view name{};     ///< in records, JSON and expressions: "nvidia"
  std::string_view maker{};    ///< as people write it; the names of its devices may begin with it
  std::string_view runtime{};  ///< the library that reads the mask in a job

  std::string_view mask_variable{};   ///< the variable that shows a job these devices and no others
  std::string_view order_variable{};  ///< the variable that makes the runtime count as the driver does; "":
                                      ///< it always does
  std::string_view order_value{};
  /// More masks that the runtime reads: indices among the devices that its mask shows.
  std::span<const std::string_view> inner_variables{};

  std::span<const std::string_view> uuid_prefixes{};  ///< of whole devices and of parts
  /// How many hexadecimal digits a UUID in a mask has after the first prefix; a mask can hold no
  /// others. 0: it can hold each UUID.
  unsigned uuid_digits = 0;
  bool mask_mixes = false;  ///< indices and UUIDs may stand in one mask
  /// If a mask names a device twice, it hides all devices. If this is false, the mask ends before
  /// the second name.
  bool twice_hides_all = false;
  /// Indices are read as in C: 010 is 8.
  bool indices_are_c_numbers = false;

  std::string_view tool{};                 ///< the maker's tool that shows devices with their indices
  std::string_view reset_command{};        ///< the command, without the index of the device
  std::string_view persistence_command{};  ///< the command that keeps devices awake
  std::string_view compute_mode_command{};
  std::string_view container_help{};  ///< how a container gets the devices
  std::string_view module{};          ///< the kernel module, as /sys/module calls it
  /// The variable that bounds the memory of a job on a device that it shares: 0=1024M,1=1024M, by
  /// the numbers that the job's mask gives its devices. "": there is none.
  std::string_view share_limit_variable{};
  /// The variable that bounds how many percent of a device's processors a job uses. "": there is
  /// none.
  std::string_view processor_limit_variable{};
  bool one_version = false;        ///< the library must have the same version as the module
  std::string_view log_pattern{};  ///< what the driver writes into the kernel's log if it fails
  /// Any user reads of its devices and their processes what root reads. Then the agent of root
  /// tells its looks to all users (receipts/shared_looks.h).
  bool tells_all_users = false;
  bool runs_cuda = false;  ///< Berth may try whether CUDA starts on its devices (source/cuda/)
  /// Files below /dev that a job opens; "#" at the end stands for a number.
  std::span<const std::string_view> device_files{};
};

/// All known vendors, in the order in which their devices are listed.
std::span<const Vendor> vendors();

/// The vendor with this name. A newer agent may name a vendor that is not known here: it then has
/// only this name, and no mask is made for its devices.
Vendor vendor_named(std::string_view name);
Vendor vendor_of(const Device& device);

/// "A100-SXM4-40GB" of "NVIDIA A100-SXM4-40GB".
std::string_view without_maker(std::string_view device_name);

/// Documents that do not name the vendor of a device are from a time when there was only one
/// vendor.
inline constexpr std::string_view kUntoldVendor = "nvidia";

}  // namespace berth
