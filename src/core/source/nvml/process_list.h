#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "berth/device/device.h"
#include "berth/source/nvml/library.h"

namespace berth::nvml {

/// The process lists of the driver come in entries of 16, 24 or 32 bytes. The form of a symbol
/// changed between drivers of one branch (R535) without a new name, so the size is found by what
/// was written.

/// Fills the buffer that a list is read into, so that what was written can be told from what was
/// not.
inline constexpr std::byte kCanary{0xAA};

/// The size of an entry, after a call wrote `count` entries into `buffer`, which was full of
/// kCanary and had room for `capacity`. nullopt: the bytes do not tell.
std::optional<std::size_t> written_entry_size(std::span<const std::byte> buffer, std::size_t count,
                                              std::size_t capacity);

/// The processes that the driver lists on a device, by pid: those that are on both lists once, as
/// compute_and_graphics. nullopt: not known, which is not "none".
Reading<std::vector<Process>> read_processes(Library& library, Handle device, Return& outcome);

}  // namespace berth::nvml
