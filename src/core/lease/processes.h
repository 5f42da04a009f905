#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  /// Goes from the process to its parent, and so on up, until `ends` says so of one of them.
  void climb(std::uint32_t pid, const std::function<bool(const UniqueProcess&)>& ends);
  virtual std::optional<std::uint32_t> owner(std::uint32_t pid) = 0;
  /// Whether the process has the file open for writing. nullopt: we may not know.
  virtual std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) = 0;
  /// "" if the variable is not set. nullopt: we may not know.
  virtual std::optional<std::string> variable(std::uint32_t pid, const std::string& name) = 0;
};

/// The same, and it asks for the stat of each process once: what one look goes by.
class ProcessesOfLook : public Processes {
 public:
  explicit ProcessesOfLook(Processes& processes) : processes_(processes) {}

  std::optional<sys::ProcessStat> stat(std::uint32_t pid) override;
  std::optional<std::uint32_t> owner(std::uint32_t pid) override { return processes_.owner(pid); }
  std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) override {
    return processes_.can_write(pid, file);
  }
  std::optional<std::string> variable(std::uint32_t pid, const std::string& name) override {
    return processes_.variable(pid, name);
  }

 private:
  Processes& processes_;
  std::map<std::uint32_t, std::optional<sys::ProcessStat>> seen_;
};

/// The processes of this machine, as /proc tells.
Processes& system_processes();

}  // namespace berth::leasing
