#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/request.h"
#include "berth/sys/job_process.h"

namespace berth::hosts {

/// How ssh is called.
struct SshProgram {
  std::vector<std::string> words{"ssh"};     ///< the program and its first options
  std::chrono::seconds connect_timeout{10};  ///< for making a connection; ssh obeys it itself
  std::string kept_folder{};                 ///< of the kept connections; "": each call makes its own
};

/// Reads the text of BERTH_SSH, words separated by spaces: "ssh -F lab.conf". "": plain ssh.
SshProgram ssh_program(std::string_view text);

/// The command that starts the envoy on the host. ssh asks the user nothing, whatever its own
/// configuration says. The configuration decides the rest: ports, keys, users, jump hosts, shared
/// connections. `more`: each is the value of an -o.
sys::Command ssh_command(const SshProgram& ssh, const LabHost& host, bool terminal,
                         const std::vector<std::string>& more = {});

/// The command that tells what the configuration says about this host (`ssh -G`). It connects to
/// nothing.
sys::Command ssh_settings(const SshProgram& ssh, const LabHost& host);

/// The command that calls `berth WORDS` there, without a terminal. REQUIRES: words that a shell
/// does not change.
sys::Command ssh_call(const SshProgram& ssh, const LabHost& host, std::string_view words);

/// Whether the host's ssh server has closed the connection before it said who it is: it takes no
/// more at this moment (MaxStartups). `errors`: the text of ssh's error stream.
bool is_turned_away(const ProcessEnd& ending, std::string_view errors);

/// Whether ssh, which shared a kept connection, may have ended for a reason that another connection
/// has not.
bool may_do_better_alone(const ProcessEnd& ending, std::string_view errors);

/// Why ssh ended before the envoy said anything, and what to do. `errors` and `output`: the text of
/// its streams. os_error: ENOENT if there is no Berth on the host.
Error why_no_envoy(const LabHost& host, const ProcessEnd& ending, std::string_view errors,
                   std::string_view output);

/// Why an envoy that has greeted has heard nothing of us, and what to do.
Error why_no_input(const LabHost& host);

/// The last line that is not empty.
std::string_view last_line(std::string_view text);

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
/// state folder of the user (store/lease_directory.h). It is made where it is missing. "": there is
/// none that this user alone can open.
std::string folder_of_kept();

/// Whether an ssh keeps it now.
bool is_there(const KeptConnection& kept);

/// Ends the ssh that keeps it, and with it whatever goes on over it. Waits a second at most.
void end_kept(const KeptConnection& kept);

/// Removes the sockets in the folder at which no ssh listens any more.
void sweep_kept(const std::string& folder);

}  // namespace berth::hosts
