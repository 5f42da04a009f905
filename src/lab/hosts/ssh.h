#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/lab_host.h"
#include "berth/sys/child.h"

namespace berth::hosts {

/// How ssh is called.
struct SshProgram {
  std::vector<std::string> words{"ssh"};     ///< the program and its first options
  std::chrono::seconds connect_timeout{10};  ///< for making a connection; ssh obeys it itself
  std::string kept_folder{};  ///< of the kept connections (kept_connection.h); "": each call makes its own
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

}  // namespace berth::hosts
