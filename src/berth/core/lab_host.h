#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"

namespace berth {

/// A machine of a lab, as ssh knows it.
struct LabHost {
  std::string name;               ///< "gpu1", "alice@gpu1", or a Host of ssh's configuration
  std::string program = "berth";  ///< how Berth is called there

  bool operator==(const LabHost&) const = default;
};

/// A hub that knows the machines of a lab, and what it wants to be shown.
struct HubPlace {
  std::string url;           ///< "https://hub:8420"; "": none
  std::string token_file{};  ///< a path; "": no token
  std::string ca_file{};     ///< who may sign its certificate; "": the system's authorities
  bool insecure = false;     ///< ask over plain HTTP without a token

  bool operator==(const HubPlace&) const = default;
};

/// What is wrong with a name of a host: ssh could take it for an option, or its shell for more than a word.
/// Error: `usage`.
Result<void> check_host_name(std::string_view name);

/// The same for the program that is called there. A path, without anything that a shell would read.
Result<void> check_host_program(std::string_view program);

/// "gpu1,gpu2,alice@gpu3". Error: `usage`, also where a name comes twice.
Result<std::vector<LabHost>> lab_hosts_from_text(std::string_view text);

/// Those of the hosts that are named (`only` empty: all), without those in `without`. Error: `usage`, for a
/// name that no host has, and when none is left.
Result<std::vector<LabHost>> selected_hosts(std::vector<LabHost> hosts, const std::vector<std::string>& only,
                                            const std::vector<std::string>& without);

}  // namespace berth
