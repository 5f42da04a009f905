#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "berth/device/device.h"

namespace berth::source {

/// Adds what /proc tells to the processes that a driver lists. A process that is gone, or that
/// cannot be seen from here, keeps what the driver said.
class ProcessDetails {
 public:
  explicit ProcessDetails(std::string proc = "/proc") : proc_(std::move(proc)) {}

  /// Fills everything but `user`. What was read of a pid is kept: it may be on several devices.
  void fill(Process& process);
  /// Some process was not there: it ended just now, or belongs to another pid namespace.
  bool missed_some() const { return missed_some_; }

 private:
  Process read(std::uint32_t pid);

  std::string proc_;
  std::map<std::uint32_t, Process> known_;
  bool missed_some_ = false;
};

/// The container that a cgroup belongs to, from the text of /proc/PID/cgroup: the id that docker,
/// podman, containerd or cri-o gave it, or the name of an lxc one. "": none.
std::string container_in_cgroup(std::string_view text);

/// Whether this process lives in a pid namespace below the machine's own, where a driver's pids may
/// mean nothing.
bool in_nested_pid_namespace(const std::string& proc = "/proc");

}  // namespace berth::source
