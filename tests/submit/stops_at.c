// Preloaded: a program stops itself (SIGSTOP) at the point that STOP_AT names, until somebody
// continues it. "task": as the process of a task, before its first line. "signal": before it asks
// another process to end. "terminal": before it gives a terminal new modes and lets it write first
// what is in it. Only the first one does, which removes the file STOP_ONCE.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

static int stops_at(const char* point) {
  const char* named = getenv("STOP_AT");
  const char* once = getenv("STOP_ONCE");
  return named && once && strcmp(named, point) == 0 && unlink(once) == 0;
}

static int runs_a_task(void) {
  char words[4096];
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, words, sizeof words);
  if (file >= 0) close(file);
  return length > 0 && memmem(words, (size_t)length, "\0__job", sizeof "\0__job");
}

__attribute__((constructor)) static void begin(void) {
  if (runs_a_task() && stops_at("task")) raise(SIGSTOP);
}

// The C library of older systems has no function for the signal through a pidfd.
long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) *(void**)(&real) = dlsym(RTLD_NEXT, "syscall");
  va_list given;
  va_start(given, number);
  long words[6];
  for (int i = 0; i < 6; ++i) words[i] = va_arg(given, long);
  va_end(given);
  if (number == SYS_pidfd_send_signal && words[1] == SIGTERM && stops_at("signal")) raise(SIGSTOP);
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int tcsetattr(int terminal, int when, const struct termios* modes) {
  static int (*real)(int, int, const struct termios*);
  if (!real) *(void**)(&real) = dlsym(RTLD_NEXT, "tcsetattr");
  if (when == TCSADRAIN && stops_at("terminal")) raise(SIGSTOP);
  return real(terminal, when, modes);
}
