#include "berth/sys/dynamic_library.h"

#include <dlfcn.h>

namespace berth::sys {

Result<DynamicLibrary> DynamicLibrary::open(const std::string& name) {
  // Someone's old error would else be taken for ours.
  dlerror();
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return DynamicLibrary(handle);
  const char* reason = dlerror();
  return fail(ErrorCode::failure, reason != nullptr ? reason : name + ": cannot be loaded");
}

void* DynamicLibrary::symbol(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace berth::sys
