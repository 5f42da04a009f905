// Preloaded: a process that is at its limit. While the file that NO_MEMORY names is there, nothing
// long is given.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { kLong = 512 << 10 };

void* malloc(size_t size) {
  static void* (*real)(size_t);
  if (real == NULL) real = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  const char* file = size < kLong ? NULL : getenv("NO_MEMORY");
  if (file != NULL && access(file, F_OK) == 0) {
    errno = ENOMEM;
    return NULL;
  }
  return real(size);
}
