#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/sys/descriptor.h"

namespace berth::sys {

/// Sends all of `text` over a Unix stream socket, and copies of the descriptors with its first
/// byte. Never raises SIGPIPE. Error: `failure`, also if nobody is at the other end.
Result<void> send_message(int socket, std::string_view text, std::span<const int> descriptors = {});

/// What has arrived over such a socket.
struct Received {
  std::string text;
  std::vector<Descriptor> descriptors{};  ///< close-on-exec
  bool ended = false;                     ///< the other end is closed, and nothing is left
};
/// Reads what has arrived, without waiting for more. Error: `failure`.
Result<Received> receive_message(int socket);

/// Whether the other end has read all that was sent to it.
bool is_all_read(int socket);

}  // namespace berth::sys
