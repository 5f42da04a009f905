#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace berth::source {

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

}  // namespace berth::source
