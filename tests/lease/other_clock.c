// Preloaded, makes a program's clocks differ from the machine's: the file that $OTHER_CLOCK names has the
// seconds that the wall clock and the boot clock are ahead. It is read at each call, so they can jump.

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec* now) {
  const int status = (int)syscall(SYS_clock_gettime, id, now);
  const char* name = getenv("OTHER_CLOCK");
  FILE* file = name != NULL ? fopen(name, "re") : NULL;
  long wall = 0;
  long boot = 0;
  if (file != NULL && fscanf(file, "%ld %ld", &wall, &boot) != 2) abort();
  if (file != NULL) fclose(file);
  if (id == CLOCK_REALTIME) now->tv_sec += wall;
  if (id == CLOCK_BOOTTIME) now->tv_sec += boot;
  return status;
}

__attribute__((visibility("default"))) time_t time(time_t* copy) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (copy != NULL) *copy = now.tv_sec;
  return now.tv_sec;
}
