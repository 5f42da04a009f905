// Goes on in a child again and again, and ends itself each time: who looks at all processes one
// after another may see none of them.
//
// hopping MILLISECONDS FILE     makes FILE when it is over

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const long end = now_ms() + atol(words[1]);
  while (now_ms() < end)
    if (fork() != 0) return 0;
  return open(words[2], O_CREAT | O_WRONLY | O_CLOEXEC, 0644) < 0;
}
