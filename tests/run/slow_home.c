// Preloaded: a home that does not answer. What is opened below SLOW_HOME for a record of runs is
// never open.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int openat(int folder, const char* name, int flags, ...) {
  const char* below = getenv("SLOW_HOME");
  while (below && strncmp(name, below, strlen(below)) == 0 && strstr(name, "/receipts")) pause();
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  int (*real)(int, const char*, int, ...) = dlsym(RTLD_NEXT, "openat");
  return real(folder, name, flags, mode);
}
