// competitors WORKERS SECONDS COMMAND…   WORKERS loops run the command again and again until SECONDS are
// over. Says how many runs ended well, how many did not, and the nanoseconds until the last one's
// end.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

struct Score {
  _Atomic long well, badly;
};

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int run(char** command, const posix_spawn_file_actions_t* silence) {
  pid_t pid;
  int status;
  if (posix_spawnp(&pid, command[0], silence, NULL, command, environ) != 0) return 0;
  while (waitpid(pid, &status, 0) < 0) {
  }
  return status == 0;
}

static void compete(char** command, long long until, struct Score* score) {
  posix_spawn_file_actions_t silence;
  posix_spawn_file_actions_init(&silence);
  posix_spawn_file_actions_addopen(&silence, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&silence, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&silence, 2, "/dev/null", O_WRONLY, 0);
  while (now_ns() < until) {
    if (run(command, &silence))
      ++score->well;
    else
      ++score->badly;
  }
}

int main(int count, char** words) {
  if (count < 4) return 2;
  struct Score* score = mmap(NULL, sizeof *score, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (score == MAP_FAILED) return 1;
  const long long begin = now_ns();
  const long long until = begin + (long long)(atof(words[2]) * 1e9);
  for (int worker = atoi(words[1]); worker > 0; --worker) {
    if (fork() == 0) {
      compete(words + 3, until, score);
      _exit(0);
    }
  }
  while (wait(NULL) > 0) {
  }
  printf("%ld %ld %lld\n", score->well, score->badly, now_ns() - begin);
  return 0;
}
