#include "berth/sys/quiet_write.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace berth::sys {

// The signal goes to the thread that writes. It is blocked there, and taken away if it was this
// write that raised it.
ssize_t write_without_signal(int descriptor, const void* data, std::size_t size) {
  sigset_t broken_pipe, before, pending;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const ssize_t written = ::write(descriptor, data, size);
  const int error = errno;
  const timespec at_once{};
  if (written < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0)
    sigtimedwait(&broken_pipe, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

}  // namespace berth::sys
