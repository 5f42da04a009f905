#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::hosts {

/// A connection that ssh keeps for later requests of this user to the same host.
struct KeptConnection {
  std::string socket{};                ///< of the ssh that keeps it
  std::vector<std::string> options{};  ///< for ssh: each is the value of an -o

  bool operator==(const KeptConnection&) const = default;
};

/// `settings`: what `ssh -G` prints for a host, which is all that ssh would do there. Of other
/// settings another connection is made, so none outlives a change of an address, a key or a jump.
/// `machine`: this one, since a home may be on several. nullopt: the user's settings share
/// connections themselves, or pass something on that belongs to one login, or the path of the
/// socket would be too long.
std::optional<KeptConnection> kept_connection(std::string_view settings, const std::string& folder,
                                              std::string_view machine);

/// The folder for the sockets: $XDG_RUNTIME_DIR/berth, or without that variable berth/ssh in the
/// state folder of the user (store/own_folder.h). It is made where it is missing. "": there is none
/// that this user alone can open.
std::string folder_of_kept();

/// Whether an ssh keeps it now.
bool is_there(const KeptConnection& kept);

/// Ends the ssh that keeps it, and with it whatever goes on over it. Waits a second at most.
void end_kept(const KeptConnection& kept);

/// Removes the sockets in the folder at which no ssh listens any more.
void sweep_kept(const std::string& folder);

}  // namespace berth::hosts
