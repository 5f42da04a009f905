// Modes, ECC, retired and remapped memory.
#include "nvml/call.h"

namespace berth::sim {
namespace {

Code retired_pages(const char* name, Handle handle, unsigned cause, unsigned* count, std::uint64_t* addresses,
                   std::uint64_t* times) {
  return on_reading(name, handle, Reading::retired, [&](const Target& target) {
    if (count == nullptr || cause > 1) return kInvalidArgument;
    const unsigned pages = cause == 0 ? target.device.retired_single : target.device.retired_double;
    const bool fits = *count >= pages;
    *count = pages;
    if (!fits) return kInsufficientSize;
    if (pages != 0 && addresses == nullptr) return kInvalidArgument;
    for (unsigned i = 0; i < pages; ++i) {
      addresses[i] = 0x10000ULL * (i + 1);
      if (times != nullptr) times[i] = 1'600'000'000'000'000ULL + i;
    }
    return kSuccess;
  });
}

Code ecc_count(const Target& target, unsigned type, unsigned counter, std::uint64_t* out) {
  if (out == nullptr || type > 1 || counter > 1) return kInvalidArgument;
  if (!target.device.ecc) return kNotSupported;
  *out = type == 0 ? target.device.ecc_corrected : target.device.ecc_uncorrected;
  return kSuccess;
}

}  // namespace

SIM_EXPORT Code nvmlDeviceGetPersistenceMode(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::persistence, out,
                     [](const Target& target) { return target.device.persistence; });
}
SIM_EXPORT Code nvmlDeviceGetDisplayMode(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::display, out,
                     [](const Target& target) { return target.device.display_connected; });
}
SIM_EXPORT Code nvmlDeviceGetDisplayActive(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::display, out,
                     [](const Target& target) { return target.device.display_active; });
}

SIM_EXPORT Code nvmlDeviceGetComputeMode(Handle handle, unsigned* out) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (out == nullptr) return kInvalidArgument;
    if (!target.device.supports(Reading::compute_mode)) return kNotSupported;
    *out = target.device.compute_mode;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetEccMode(Handle handle, unsigned* current, unsigned* pending) {
  return on_reading(__func__, handle, Reading::ecc, [&](const Target& target) {
    if (current == nullptr || pending == nullptr) return kInvalidArgument;
    *current = *pending = target.device.ecc ? 1 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetTotalEccErrors(Handle handle, unsigned type, unsigned counter,
                                            std::uint64_t* out) {
  return on_reading(__func__, handle, Reading::ecc,
                    [&](const Target& target) { return ecc_count(target, type, counter, out); });
}

SIM_EXPORT Code nvmlDeviceGetMemoryErrorCounter(Handle handle, unsigned type, unsigned counter,
                                                unsigned location, std::uint64_t* out) {
  return on_reading(__func__, handle, Reading::ecc, [&](const Target& target) {
    if (location > 8) return kInvalidArgument;
    const Code code = ecc_count(target, type, counter, out);
    if (code == kSuccess && location != 2) *out = 0;  // all errors are in DRAM
    return code;
  });
}

SIM_EXPORT Code nvmlDeviceGetRetiredPages(Handle handle, unsigned cause, unsigned* count,
                                          std::uint64_t* addresses) {
  return retired_pages(__func__, handle, cause, count, addresses, nullptr);
}
SIM_EXPORT Code nvmlDeviceGetRetiredPages_v2(Handle handle, unsigned cause, unsigned* count,
                                             std::uint64_t* addresses, std::uint64_t* times) {
  return retired_pages(__func__, handle, cause, count, addresses, times);
}
SIM_EXPORT Code nvmlDeviceGetRetiredPagesPendingStatus(Handle handle, unsigned* out) {
  return read_number(__func__, handle, Reading::retired, out,
                     [](const Target& target) { return target.device.retired_pending; });
}

SIM_EXPORT Code nvmlDeviceGetRemappedRows(Handle handle, unsigned* corrected, unsigned* uncorrected,
                                          unsigned* pending, unsigned* failure) {
  return on_reading(__func__, handle, Reading::remapped, [&](const Target& target) {
    if (corrected == nullptr || uncorrected == nullptr || pending == nullptr || failure == nullptr)
      return kInvalidArgument;
    if (target.device.mig_enabled && !target.device.instances.empty()) return kNotSupported;
    *corrected = target.device.remapped_corrected;
    *uncorrected = target.device.remapped_uncorrected;
    *pending = target.device.remap_pending ? 1 : 0;
    *failure = target.device.remap_failure ? 1 : 0;
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetRowRemapperHistogram(Handle handle, unsigned* banks) {
  return on_reading(__func__, handle, Reading::remapped, [&](const Target& target) {
    if (banks == nullptr) return kInvalidArgument;
    const unsigned used = target.device.remapped_corrected + target.device.remapped_uncorrected;
    const unsigned histogram[5] = {640 - used, 0, used, 0, 0};
    std::memcpy(banks, histogram, sizeof histogram);
    return kSuccess;
  });
}

}  // namespace berth::sim
