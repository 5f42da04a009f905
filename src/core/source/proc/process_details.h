#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "berth/device/device.h"
#include "berth/source/source.h"

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

/// Names of users. The system's name service may ask a server on the network and never come back,
/// so what /etc/passwd has is taken from there, and the service is asked apart, when everything
/// else is done.
class UserNames {
 public:
  explicit UserNames(std::string passwd = "/etc/passwd") : passwd_(std::move(passwd)) {}

  /// From the file, or from an earlier answer of the service. nullopt: not known so far.
  std::optional<std::string> known(std::uint32_t uid);
  /// From the name service, which may hang. "": the service knows no such user, which is
  /// remembered.
  const std::string& ask(std::uint32_t uid);

 private:
  void read_file();

  std::string passwd_;
  bool file_read_ = false;
  std::map<std::uint32_t, std::string> names_;
};

/// Tells who the processes of one snapshot are.
class ProcessDescriber {
 public:
  ProcessDescriber(UserNames& names, const std::string& proc = "/proc")
      : names_(names), proc_(proc), details_(proc) {}

  /// Everything but names that only the system's name service knows.
  void describe(Device& device);
  /// Asks the service for those, and notes what cannot be known from here. After all devices.
  void finish(Sink& sink);

 private:
  UserNames& names_;
  std::string proc_;
  ProcessDetails details_;
  std::set<std::uint32_t> unnamed_;
};

}  // namespace berth::source
