#pragma once

#include <string>

#include "berth/base/error.h"
#include "berth/sys/descriptor.h"

namespace berth::jobs {

/// The socket at which the terminal of a task is reached. It lies beside the files of the job, in a
/// folder that only their user can enter. A message is one packet of
/// src/work/jobs/model/attached.h, or a piece of what the terminal shows.

/// Makes the socket anew and listens, without blocking. REQUIRES: the lock of the task. Error:
/// `failure`.
Result<sys::Descriptor> listen_for_terminals(const std::string& path);
/// A connection of the user of this process. Empty: there is none, or somebody else's.
sys::Descriptor accept_terminal(int listening);
/// Error: `failure`, with errno's reason; nobody listens there.
Result<sys::Descriptor> connect_to_terminal(const std::string& path);

}  // namespace berth::jobs
