#include "berth/lease/processes.h"

namespace berth::leasing {
namespace {

class SystemProcesses : public Processes {
 public:
  std::optional<sys::ProcessStat> stat(std::uint32_t pid) override {
    return sys::process_stat(static_cast<pid_t>(pid));
  }
  std::optional<std::uint32_t> owner(std::uint32_t pid) override {
    return sys::process_owner(static_cast<pid_t>(pid));
  }
  std::optional<bool> can_write(std::uint32_t pid, const sys::FileIdentity& file) override {
    return sys::process_can_write(static_cast<pid_t>(pid), file);
  }
  std::optional<std::string> variable(std::uint32_t pid, const std::string& name) override {
    return sys::process_variable(static_cast<pid_t>(pid), name);
  }
};

}  // namespace

Processes& system_processes() {
  static SystemProcesses processes;
  return processes;
}

}  // namespace berth::leasing
