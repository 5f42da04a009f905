#pragma once

#include <span>
#include <string_view>

namespace berth {

struct Device;

/// Whose devices these are, and what that means for a job on them. A request gets devices of one vendor.
struct Vendor {
  std::string_view name{};     ///< in records, JSON and expressions: "nvidia"
  std::string_view maker{};    ///< as people write it, and as the names of its devices may begin
  std::string_view runtime{};  ///< what reads the mask in a job

  std::string_view mask_variable{};   ///< shows a job these devices and no others
  std::string_view order_variable{};  ///< makes the runtime count as the driver does; "": it always does
  std::string_view order_value{};
  /// Masks that the runtime reads as well, as indices among what its mask shows.
  std::span<const std::string_view> inner_variables{};

  std::span<const std::string_view> uuid_prefixes{};  ///< of whole devices and of parts
  /// Hexadecimal digits of a UUID that a mask can hold, behind the first prefix; 0: it can hold each.
  unsigned uuid_digits = 0;
  bool mask_mixes = false;  ///< indices and UUIDs may stand in one mask
  /// A device that a mask names twice hides all. Else the mask ends before the second name.
  bool twice_hides_all = false;
  /// Indices are read as in C: 010 is 8.
  bool indices_are_c_numbers = false;

  std::string_view tool{};                 ///< the maker's own, that shows devices with their indices
  std::string_view reset_command{};        ///< before the index of a device
  std::string_view persistence_command{};  ///< keeps devices awake
  std::string_view compute_mode_command{};
  std::string_view container_help{};  ///< how a container gets the devices
  std::string_view module{};          ///< the kernel's, as /sys/module calls it
  bool one_version = false;           ///< the library that was asked must be of the module's version
  std::string_view log_pattern{};     ///< what the driver writes into the kernel's log when it fails
  /// Files below /dev that a job opens; "#" at the end stands for a number.
  std::span<const std::string_view> device_files{};
};

/// All that are known, in the order in which their devices are listed.
std::span<const Vendor> vendors();

/// The vendor with this name. One that is not known, as a newer agent may tell of, has its name and nothing
/// else: no mask is made for its devices.
Vendor vendor_named(std::string_view name);
Vendor vendor_of(const Device& device);

/// "A100-SXM4-40GB" of "NVIDIA A100-SXM4-40GB".
std::string_view without_maker(std::string_view device_name);

/// What tells of devices without saying whose they are comes from a time when there was one vendor.
inline constexpr std::string_view kUntoldVendor = "nvidia";

}  // namespace berth
