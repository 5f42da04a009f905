// The least that leases cost: WORKERS processes compete for one file, COUNT times in all. Each time
// a new process takes its lock and ends, which gives it back. Says how many nanoseconds all of it
// took.
//
//     bare_cycle FILE WORKERS COUNT

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int work(const char* path, int count) {
  for (; count > 0; --count) {
    const pid_t child = fork();
    if (child == 0) {
      const int file = open(path, O_RDWR);
      _exit(file < 0 || flock(file, LOCK_EX) != 0);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return 0;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const int workers = atoi(words[2]);
  if (workers < 1 || open(words[1], O_RDWR | O_CREAT, 0666) < 0) return 1;
  const long long begin = now_ns();
  for (int worker = 0; worker < workers; ++worker) {
    if (fork() == 0) _exit(work(words[1], atoi(words[3]) / workers));
  }
  int failed = 0;
  for (int status; wait(&status) > 0;) failed |= status;
  printf("%lld\n", now_ns() - begin);
  return failed != 0;
}
