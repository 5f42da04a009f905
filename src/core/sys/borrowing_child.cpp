// By clone(2) and not by posix_spawn(3), which asks for each of 64 signals in turn what its handler
// is: a third of the time that a start takes. The handlers matter because none of them may run in
// the child.
#include "berth/sys/borrowing_child.h"

#include <sched.h>

#include <csignal>
#include <memory>

#ifdef __SANITIZE_THREAD__
// TSan's clone() takes the child for a fork, though it borrows our memory, and watches this thread
// no more.
extern "C" int __clone(int (*)(void*), void*, int, void*, ...) noexcept;
#define clone __clone
#endif

namespace berth::sys {
namespace {

constexpr std::size_t kOwnFrames = 32 << 10;
constexpr std::size_t kAlignment = 16;

}  // namespace

pid_t start_borrowing(int (*begin)(void*), void* argument, std::size_t words) {
  // A script without "#!" is given to a shell: the C library then copies all words to the stack.
  const std::size_t size = kOwnFrames + (words * sizeof(char*) / kAlignment + 1) * kAlignment;
  const auto stack = std::make_unique_for_overwrite<char[]>(size);
  return clone(begin, stack.get() + size, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
}

}  // namespace berth::sys
