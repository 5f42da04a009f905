// Runs a program and stops it (SIGSTOP) right after one of its system calls on a directory. With
// ptrace, so that the program needs no fault points and no step can be forgotten.
//
// at_step REPORT DIRECTORY STEP COMMAND…
//
// STEP counts from 1; 0 stops before the first. When the program is stopped its pid is written to
// the descriptor REPORT, and it is traced no longer. REPORT ends without a pid when the program
// made fewer calls. Ends as the program ends.

#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* directory;

static bool lies_there(const char* path) {
  return strncmp(path, directory, strlen(directory)) == 0;
}

static bool is_descriptor_there(pid_t pid, uint64_t value) {
  char link[64];
  char path[PATH_MAX] = "";
  if ((int)value < 0) return false;
  snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, (int)value);
  return readlink(link, path, sizeof path - 1) > 0 && lies_there(path);
}

static bool is_path_there(pid_t pid, uint64_t value) {
  char text[PATH_MAX] = "";
  // Not past the end of the page: what lies behind may be nobody's.
  const size_t length = (size_t)(4096 - value % 4096);
  const struct iovec here = {text, length < sizeof text ? length : sizeof text - 1};
  const struct iovec there = {(void*)(uintptr_t)value, here.iov_len};  // NOLINT(performance-no-int-to-ptr)
  return value > 4096 && process_vm_readv(pid, &here, 1, &there, 1, 0) > 0 && lies_there(text);
}

static bool is_on_directory(pid_t pid, const struct __ptrace_syscall_info* call) {
  const uint64_t* words = (const uint64_t*)call->entry.args;
  return is_descriptor_there(pid, words[0]) || is_descriptor_there(pid, words[2]) ||
         is_path_there(pid, words[0]) || is_path_there(pid, words[1]) || is_path_there(pid, words[3]);
}

// The status as it comes from waitpid.
static int end_as(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

static int stop_and_wait(pid_t pid, int report) {
  int status = 0;
  ptrace(PTRACE_DETACH, pid, NULL, SIGSTOP);
  waitpid(pid, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    dprintf(report, "%d\n", pid);
    close(report);
    waitpid(pid, &status, 0);
  }
  return end_as(status);
}

int main(int count, char** words) {
  if (count < 5) return 2;
  const int report = atoi(words[1]);
  directory = words[2];
  int left = atoi(words[3]);
  const pid_t pid = fork();
  if (pid == 0) {
    close(report);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execv(words[4], words + 4);
    _exit(127);
  }
  int status = 0;
  int sent = 0;
  bool counts = false;
  waitpid(pid, &status, 0);
  ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  while (left > 0) {
    ptrace(PTRACE_SYSCALL, pid, NULL, (void*)(intptr_t)sent);
    waitpid(pid, &status, 0);
    if (!WIFSTOPPED(status)) return end_as(status);
    sent = 0;
    struct __ptrace_syscall_info call;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      sent = WSTOPSIG(status);
    } else if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof call, &call) > 0) {
      if (call.op == PTRACE_SYSCALL_INFO_ENTRY) counts = is_on_directory(pid, &call);
      if (call.op == PTRACE_SYSCALL_INFO_EXIT && counts) --left;
    }
  }
  return stop_and_wait(pid, report);
}
