// Preloaded: a disk below REFUSING_BELOW that refuses calls, counted over all processes in the file
// REFUSING_CALLS (numbers of 4 bytes: calls so far, the first and the last that fail, their errno).
// With REFUSING_HOLES no file there can get a hole.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (!real) *(void**)(&real) = dlsym(RTLD_NEXT, #name)

static int* calls;
static const char* below;

__attribute__((constructor)) static void begin(void) {
  REAL(int, open, const char*, int, ...);
  const char* path = getenv("REFUSING_CALLS");
  below = getenv("REFUSING_BELOW");
  const int file = path && below ? real(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* shared = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared != MAP_FAILED) calls = shared;
  close(file);
}

static int refused(int folder, const char* name) {
  if (!calls) return 0;
  const int before = errno;
  char link[32], path[PATH_MAX] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  const char* whole = name && *name == '/' ? name : path;
  if (whole == path && readlink(link, path, sizeof path - 1) < 0) path[0] = 0;
  int is_refused = 0;
  if (strncmp(whole, below, strlen(below)) == 0) {
    const int call = __sync_add_and_fetch(&calls[0], 1);
    is_refused = call >= calls[1] && call <= calls[2];
  }
  errno = is_refused ? calls[3] : before;
  return is_refused;
}

// A file that is there takes nothing new.
static int is_new(int folder, const char* path, int flags) {
  struct stat status;
  return (flags & O_CREAT) && fstatat(folder, path, &status, 0) != 0;
}

int openat(int folder, const char* path, int flags, ...) {
  REAL(int, openat, int, const char*, int, ...);
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return is_new(folder, path, flags) && refused(folder, path) ? -1 : real(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) __attribute__((alias("openat")));

int mkdir(const char* path, mode_t mode) {
  REAL(int, mkdir, const char*, mode_t);
  return refused(-1, path) ? -1 : real(path, mode);
}

int mkdirat(int folder, const char* path, mode_t mode) {
  REAL(int, mkdirat, int, const char*, mode_t);
  return refused(folder, path) ? -1 : real(folder, path, mode);
}

int mkfifoat(int folder, const char* path, mode_t mode) {
  REAL(int, mkfifoat, int, const char*, mode_t);
  return refused(folder, path) ? -1 : real(folder, path, mode);
}

int renameat2(int from, const char* path, int to, const char* name, unsigned flags) {
  REAL(int, renameat2, int, const char*, int, const char*, unsigned);
  return refused(to, name) ? -1 : real(from, path, to, name, flags);
}

ssize_t write(int file, const void* text, size_t size) {
  REAL(ssize_t, write, int, const void*, size_t);
  return refused(file, NULL) ? -1 : real(file, text, size);
}

ssize_t pwrite64(int file, const void* text, size_t size, off_t at) {
  REAL(ssize_t, pwrite64, int, const void*, size_t, off_t);
  return refused(file, NULL) ? -1 : real(file, text, size, at);
}
ssize_t pwrite(int file, const void* text, size_t size, off_t at) __attribute__((alias("pwrite64")));

int fallocate64(int file, int mode, off_t at, off_t size) {
  REAL(int, fallocate64, int, int, off_t, off_t);
  if (calls && getenv("REFUSING_HOLES")) return errno = EOPNOTSUPP, -1;
  return refused(file, NULL) ? -1 : real(file, mode, at, size);
}
int fallocate(int file, int mode, off_t at, off_t size) __attribute__((alias("fallocate64")));

int fsync(int file) {
  REAL(int, fsync, int);
  return refused(file, NULL) ? -1 : real(file);
}

int fdatasync(int file) {
  REAL(int, fdatasync, int);
  return refused(file, NULL) ? -1 : real(file);
}
