// Before and after a fork ASan goes through a table of a million stacks, so that no other thread
// holds one of them. A child then touches a thousand pages more, in twice the time that it takes
// without. Where there is no other thread, that is in vain.
#define _GNU_SOURCE
#include <sys/single_threaded.h>
#include <unistd.h>

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void) {
  return __libc_single_threaded ? _Fork() : __real_fork();
}
