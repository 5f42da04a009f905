#include "berth/lease/processes.h"

namespace berth::leasing {
namespace {

// Deeper than any real tree of processes; a /proc that changes while it is walked cannot make this
// endless.
constexpr int kDeepest = 256;

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

void Processes::climb(std::uint32_t pid, const std::function<bool(const UniqueProcess&)>& ends) {
  for (int depth = 0; depth < kDeepest && pid > 0; ++depth) {
    const auto seen = stat(pid);
    if (!seen || ends(seen->process)) return;
    pid = static_cast<std::uint32_t>(seen->parent);
  }
}

std::optional<sys::ProcessStat> ProcessesOfLook::stat(std::uint32_t pid) {
  const auto [known, is_new] = seen_.try_emplace(pid);
  if (is_new) known->second = processes_.stat(pid);
  return known->second;
}

Processes& system_processes() {
  static SystemProcesses processes;
  return processes;
}

}  // namespace berth::leasing
