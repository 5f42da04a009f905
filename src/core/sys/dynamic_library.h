#pragma once

#include <string>

#include "berth/base/error.h"

namespace berth::sys {

/// A shared library that is loaded while the program runs. It stays loaded when this object ends,
/// because drivers do not survive being unloaded, and a process that loads one does nothing else.
class DynamicLibrary {
 public:
  /// Binds all symbols at once, so that a broken library fails here and not in the middle of a
  /// call. Other libraries do not see the symbols. Error: `failure`, with the loader's words.
  static Result<DynamicLibrary> open(const std::string& name);

  /// Null if the library has no such symbol.
  void* symbol(const char* name) const;

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace berth::sys
