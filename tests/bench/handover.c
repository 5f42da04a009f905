// The least that handing one device over can take: a process sleeps in flock() and starts its
// command when the holder of the lock is gone.
//
//     handover wait FILE    waits for the lock of FILE and becomes `handover stamp`, which then holds it
//     handover stamp        says "PID PARENT NANOSECONDS" (CLOCK_MONOTONIC) and sleeps until it is killed,
//                           or, by SIGTERM, ends in order

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static void end(int signal) {
  _exit(signal != SIGTERM);
}

static int stamp(void) {
  signal(SIGTERM, end);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[96];
  const int length = snprintf(line, sizeof line, "%d %d %lld\n", getpid(), getppid(),
                              now.tv_sec * 1000000000LL + now.tv_nsec);
  if (write(STDOUT_FILENO, line, (size_t)length) != length) return 1;
  for (;;) pause();
}

int main(int count, char** words) {
  if (count == 2 && strcmp(words[1], "stamp") == 0) return stamp();
  if (count != 3 || strcmp(words[1], "wait") != 0) return 2;
  const int file = open(words[2], O_RDWR | O_CREAT, 0666);
  if (file < 0 || write(STDERR_FILENO, "waiting\n", 8) != 8) return 1;
  if (flock(file, LOCK_EX) != 0) return 1;
  execl("/proc/self/exe", "handover", "stamp", (char*)NULL);
  return 1;
}
