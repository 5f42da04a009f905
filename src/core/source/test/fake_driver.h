#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "berth/source/nvml/library.h"

namespace berth::nvml {

/// A driver of plain functions that a test sets up entry by entry. What is not set up, the library
/// does not have. It is one object, as a real library is, and reset by making a new FakeDriver.
class FakeDriver {
 public:
  struct Gpu {
    std::string uuid;
    Return handle = kSuccess;
    Return answer = kSuccess;  ///< of every call about it
  };

  explicit FakeDriver(std::vector<Gpu> gpus);

  Library library();
  /// Puts a function under a name; null takes it away.
  template <class... Parameters>
  void set(const char* name, Return (*function)(Parameters...)) {
    functions_[name] = reinterpret_cast<void*>(function);
  }
  void remove(const char* name) { functions_.erase(name); }

  std::vector<Gpu> gpus;
  std::map<std::string, int> calls;  ///< of functions that count themselves

  static FakeDriver& current();
  /// To be called first by each function about a device.
  static Return enter(const char* name, Handle device);
  static Handle handle_of(unsigned index);
  static unsigned index_of(Handle device);

 private:
  std::map<std::string, void*> functions_;
};

/// The first part of an entry of a process list, whatever its size.
struct ListedProcess {
  std::uint32_t pid;
  std::uint64_t used_bytes;
};

/// Writes a list as a driver with entries of `size` bytes does.
Return write_list(const std::vector<ListedProcess>& processes, std::size_t size, unsigned* count,
                  void* buffer);

}  // namespace berth::nvml
