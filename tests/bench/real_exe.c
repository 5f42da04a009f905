// Preloaded where valgrind counts: there /proc/self/exe, by which berth starts its probe, is valgrind.
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

extern char** environ;

int execvp(const char* file, char* const arguments[]) {
  static char path[4096];
  // Valgrind answers this one as if it were not there.
  if (strcmp(file, "/proc/self/exe") == 0 && readlink(file, path, sizeof path - 1) > 0) file = path;
  return execvpe(file, arguments, environ);
}
