#pragma once

#include <sys/types.h>

#include <cstddef>

namespace berth::sys {

/// As write(2). If nobody reads there any more, it fails with EPIPE and raises no SIGPIPE, and the
/// children of this process inherit nothing of that.
ssize_t write_without_signal(int descriptor, const void* data, std::size_t size);

}  // namespace berth::sys
