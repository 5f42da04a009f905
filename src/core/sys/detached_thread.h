#pragma once

#include <functional>

namespace berth::sys {

/// Begins work that may hang for as long as a driver, a disk or a name service does. Nothing can
/// end a thread that hangs, so nobody waits for it: `work` must own what it uses, or use what lives
/// as long as the process. Signals are for the other threads. Throws std::system_error if the
/// system gives no thread.
void begin_detached(std::function<void()> work);

}  // namespace berth::sys
