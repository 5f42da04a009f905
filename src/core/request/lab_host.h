#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth {

/// A machine of a lab, as ssh knows it.
struct LabHost {
  std::string name;               ///< "gpu1", "alice@gpu1", or a Host of ssh's configuration
  std::string program = "berth";  ///< how Berth is called there

  bool operator==(const LabHost&) const = default;
};

/// What becomes of a connection to a machine of a lab after it has served.
enum class Connection {
  kept,  ///< it stays for a minute, for whatever is asked there next
  each,  ///< it ends, and each call makes its own
};

/// Reads "kept" or "each". Error: `usage`.
Result<Connection> connection_from_text(std::string_view text);

/// A hub that knows the machines of a lab, and how to ask it.
struct HubAccess {
  std::string url;           ///< "https://hub:8420"; "": none
  std::string token_file{};  ///< a path; "": no token
  std::string ca_file{};     ///< the authorities that may sign its certificate; "": the system's
  bool insecure = false;     ///< ask over plain HTTP without a token

  bool operator==(const HubAccess&) const = default;
};

/// Whether a user who says this as the hosts means those of a hub: a URL.
bool is_hub_url(std::string_view hosts);

/// Checks the name of a host: ssh must not take it for an option, nor a shell for more than one
/// word. Error: `usage`.
Result<void> check_host_name(std::string_view name);

/// Checks the program that is called there: a path, without characters that mean something to a
/// shell.
Result<void> check_host_program(std::string_view program);

/// Reads "gpu1,gpu2,alice@gpu3". Error: `usage`, also if a name comes twice.
Result<std::vector<LabHost>> lab_hosts_from_text(std::string_view text);

/// The hosts that `only` names (if it is empty: all), without those in `without`. Error: `usage`
/// for a name that no host has, and if no host is left.
Result<std::vector<LabHost>> selected_hosts(std::vector<LabHost> hosts, const std::vector<std::string>& only,
                                            const std::vector<std::string>& without);

}  // namespace berth
