#include "berth/source/nvml/library.h"

#include "berth/source/nvml/outcome.h"
#include "berth/sys/dynamic_library.h"

namespace berth::nvml {

Result<Library> Library::load() {
  // Never "libnvidia-ml.so": the CUDA toolkit installs a stub of that name, which fails every call.
  auto library = sys::DynamicLibrary::open("libnvidia-ml.so.1");
  if (!library) {
    Error error = error_of(kLibraryNotFound);
    error.message += " (" + library.error().message + ")";
    return std::unexpected(std::move(error));
  }
  return Library([loaded = *library](const char* name) { return loaded.symbol(name); });
}

}  // namespace berth::nvml
