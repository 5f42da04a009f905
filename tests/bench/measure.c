// measure time COMMAND…   nanoseconds from its start to its end, and its wait status
// measure memory COMMAND… peak resident KiB of each of its processes, in the order in which they
// end
//
// A program of its own, because a child of a large process (Python) begins with that one's peak as
// its own, and because a launcher that is slow itself would make all ratios look better than they
// are.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static int complain(const char* what) {
  fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
  return 2;
}

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int measure_time(char** command) {
  posix_spawn_file_actions_t silence;
  posix_spawn_file_actions_init(&silence);
  posix_spawn_file_actions_addopen(&silence, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&silence, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid;
  int status;
  const long long begin = now_ns();
  errno = posix_spawnp(&pid, command[0], &silence, NULL, command, environ);
  if (errno != 0) return complain(command[0]);
  while (waitpid(pid, &status, 0) < 0) {
  }
  printf("%lld %d\n", now_ns() - begin, status);
  return 0;
}

// The kernel keeps the peak in the memory map, which is still there when the exit is announced.
static void print_peak(pid_t pid) {
  char path[64];
  char line[256];
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  FILE* status = fopen(path, "r");
  if (status == NULL) return;
  while (fgets(line, sizeof line, status) != NULL) {
    // A thread has the memory of its process.
    if (strncmp(line, "Tgid:", 5) == 0 && strtol(line + 5, NULL, 10) != pid) break;
    if (strncmp(line, "VmHWM:", 6) == 0) printf("%ld\n", strtol(line + 6, NULL, 10));
  }
  fclose(status);
}

static void begin_traced(char** command) {
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, 1);
  dup2(nowhere, 2);
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGSTOP);
  execvp(command[0], command);
  _exit(127);
}

static int measure_memory(char** command) {
  const long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                       PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  const pid_t first = fork();
  if (first < 0) return complain("fork");
  if (first == 0) begin_traced(command);
  int status;
  waitpid(first, &status, 0);
  if (ptrace(PTRACE_SETOPTIONS, first, NULL, options) != 0) return complain("ptrace");
  ptrace(PTRACE_CONT, first, NULL, 0L);
  for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
    if (!WIFSTOPPED(status)) continue;
    const int event = status >> 16;
    if (event == PTRACE_EVENT_EXIT) print_peak(pid);
    const int signal = WSTOPSIG(status);
    // A traced child begins with a stop of the tracer's making.
    const int pass_on = event != 0 || signal == SIGSTOP || signal == SIGTRAP ? 0 : signal;
    ptrace(PTRACE_CONT, pid, NULL, (long)pass_on);
  }
  return 0;
}

int main(int count, char** arguments) {
  if (count > 2 && strcmp(arguments[1], "time") == 0) return measure_time(arguments + 2);
  if (count > 2 && strcmp(arguments[1], "memory") == 0) return measure_memory(arguments + 2);
  fprintf(stderr, "usage: measure time|memory COMMAND [ARGUMENT...]\n");
  return 2;
}
