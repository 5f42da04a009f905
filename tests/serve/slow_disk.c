// Preloaded: a disk that hangs. While the file that SLOW_DISK names is there, nothing that a
// database reads or writes comes to an end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char* file = getenv("SLOW_DISK");
  while (file != NULL && access(file, F_OK) == 0) usleep(10000);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  wait_for_disk();
  ssize_t (*real)(int, const void*, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  return real(file, bytes, size, at);
}

ssize_t pread64(int file, void* bytes, size_t size, off64_t at) {
  wait_for_disk();
  ssize_t (*real)(int, void*, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
  return real(file, bytes, size, at);
}
