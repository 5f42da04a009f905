// Many who wait, each a process of its own, made by docs/lease-protocol.md alone: to the programs
// before and behind them a queue as any other, at a hundredth of the cost of as many `berth run`.
//
// crowd DIR UUID SIZE BEHIND     SIZE waiters for this device, the first of them behind the ticket BEHIND,
// each
//                                other behind the one before. It says "ready" when all stand in the queue,
//                                and ends with the end of its input. One that is first takes nothing.

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kWaiting = 1 };

static void check(int succeeded, const char* what) {
  if (succeeded) return;
  perror(what);
  exit(1);
}

static uint64_t since_boot_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void lock_bytes(int file, int wait, short type, off_t first, off_t count) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
  check(fcntl(file, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) == 0, "locking a ticket");
}

// Gives its id. All before it in the queue are older: a crowd has the gate to itself.
static uint64_t join(const char* directory, const char* uuid) {
  char path[4096];
  snprintf(path, sizeof path, "%s/queue", directory);
  const int ticket = open(path, O_TMPFILE | O_RDWR, 0600);
  check(ticket >= 0 && fchmod(ticket, 0644) == 0, "making a ticket");
  lock_bytes(ticket, 0, F_WRLCK, 0, 0);  // all bytes
  const int gate = open(directory, O_RDONLY | O_DIRECTORY);
  check(gate >= 0 && flock(gate, LOCK_EX) == 0, "entering the gate");
  const uint64_t id = since_boot_ns();
  char text[512];
  const int length = snprintf(text, sizeof text,
                              "berth-ticket 1\nid=%016llx\npid=%d\njoined_at=%lld\ncount=1\n"
                              "command=crowd\ncandidate=%s\nend\n",
                              (unsigned long long)id, getpid(), (long long)time(NULL), uuid);
  check(pwrite(ticket, text, (size_t)length, 0) == length, "writing a ticket");
  char unnamed[64];
  snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", ticket);
  snprintf(path, sizeof path, "%s/queue/%016llx", directory, (unsigned long long)id);
  check(linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0, "naming a ticket");
  close(gate);
  return id;
}

static void sleep_behind(const char* directory, uint64_t rival) {
  char path[4096];
  snprintf(path, sizeof path, "%s/queue/%016llx", directory, (unsigned long long)rival);
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
  if (file >= 0) lock_bytes(file, 1, F_RDLCK, kWaiting, 1);
}

int main(int count, char** words) {
  check(count == 5, "usage: crowd DIR UUID SIZE BEHIND");
  int joined[2];
  check(pipe(joined) == 0, "making a pipe");
  uint64_t before = strtoull(words[4], NULL, 16);
  for (int size = atoi(words[3]); size > 0; --size) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const uint64_t mine = join(words[1], words[2]);
      check(write(joined[1], &mine, sizeof mine) == sizeof mine, "telling");
      sleep_behind(words[1], before);
      for (;;) pause();
    }
    check(read(joined[0], &before, sizeof before) == sizeof before, "hearing");
  }
  check(write(STDOUT_FILENO, "ready\n", 6) == 6, "telling");
  char end;
  return read(STDIN_FILENO, &end, 1) == 0 ? 0 : 1;
}
