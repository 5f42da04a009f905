#pragma once

#include <string>

#include "berth/core/error.h"

namespace berth::sys {

/// A shared library loaded while the program runs. It stays loaded when this ends: drivers do not survive
/// being unloaded, and a process that loads one lives for nothing else.
class DynamicLibrary {
 public:
  /// All symbols are bound at once, so that a broken library fails here and not in the middle of a call; none
  /// of them is seen by other libraries. Error: `failure`, with the loader's words.
  static Result<DynamicLibrary> open(const std::string& name);

  /// Null when the library has no such symbol.
  void* symbol(const char* name) const;

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace berth::sys
