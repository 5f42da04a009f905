#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/sys/process_identity.h"

namespace berth::leasing {

/// The questions about other processes, as an interface, so that tests can answer them.
class Processes {
 public:
  virtual ~Processes() = default;

  /// nullopt: there is no such process, or we may not see it.
  virtual std::optional<sys::ProcessStat> stat(std::uint32_t pid) = 0;
  virtual std::optional<std::uint32_t> owner(std::uint32_t pid) = 0;
  /// Whether the process has the file open for writing. nullopt: we may not know.
  virtual std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) = 0;
  /// "" if the variable is not set. nullopt: we may not know.
  virtual std::optional<std::string> variable(std::uint32_t pid, const std::string& name) = 0;
};

/// The processes of this machine, as /proc tells.
Processes& system_processes();

}  // namespace berth::leasing
