#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/sys/process_identity.h"

namespace berth::leasing {

/// What is asked of other processes, so that tests can answer.
class Processes {
 public:
  virtual ~Processes() = default;

  /// nullopt: there is none, or it may not be seen.
  virtual std::optional<sys::ProcessStat> stat(std::uint32_t pid) = 0;
  virtual std::optional<std::uint32_t> owner(std::uint32_t pid) = 0;
  /// Whether it has the file open for writing. nullopt: it may not be asked.
  virtual std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) = 0;
  /// "" when it is not set. nullopt: it may not be asked.
  virtual std::optional<std::string> variable(std::uint32_t pid, const std::string& name) = 0;
};

/// Those of this machine, as /proc tells.
Processes& system_processes();

}  // namespace berth::leasing
