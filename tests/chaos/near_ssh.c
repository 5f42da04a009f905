// Stands in for ssh and sshd where a connection costs too much: the hosts are this machine. As with
// them, whoever is called has a session and an environment of its own, outlives its caller, and
// sees the end of it at its streams alone.
//
// near_ssh FOLDER OPTION… HOST COMMAND     FOLDER/HOST/environ: what a command there sees, as
// /proc/PID/environ has it

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kOwnError = 255, kMostVariables = 200, kMostBytes = 64 * 1024 };

static const char kPassed[] = "CHAOS_REQUEST";  // what SendEnv and AcceptEnv name

static void fail(const char* what) {
  perror(what);
  exit(kOwnError);
}

static void call(const char* folder, const char* host, const char* command) {
  static char text[kMostBytes];
  static char* variables[kMostVariables + 2];
  char path[4096];
  snprintf(path, sizeof path, "%s/%s/environ", folder, host);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path);
  const ssize_t length = read(file, text, sizeof text - 1);
  if (length < 0) fail(path);
  int count = 0;
  for (char* at = text; at < text + length && count < kMostVariables; at += strlen(at) + 1)
    variables[count++] = at;
  char passed[256];
  if (getenv(kPassed) != NULL) {
    snprintf(passed, sizeof passed, "%s=%s", kPassed, getenv(kPassed));
    variables[count] = passed;
  }
  setsid();
  execle("/bin/sh", "sh", "-c", command, (char*)NULL, variables);
  fail("/bin/sh");
}

/// False: it has ended, on one of the two sides. Nobody here is told more at once than a pipe
/// holds.
static int pass_on(int from, int to) {
  char piece[kMostBytes];
  const ssize_t length = read(from, piece, sizeof piece);
  if (length <= 0) return 0;
  for (ssize_t done = 0; done < length;) {
    const ssize_t written = write(to, piece + done, (size_t)(length - done));
    if (written < 0) return 0;
    done += written;
  }
  return 1;
}

int main(int count, char** words) {
  if (count < 4) {
    fputs("near_ssh FOLDER OPTION… HOST COMMAND\n", stderr);
    return kOwnError;
  }
  signal(SIGPIPE, SIG_IGN);
  int pipes[3][2];  // of its input, output and errors: the end that is read, the end that is written
  for (int stream = 0; stream < 3; ++stream)
    if (pipe2(pipes[stream], O_CLOEXEC) != 0) fail("pipe2");
  const pid_t called = fork();
  if (called < 0) fail("fork");
  if (called == 0) {
    for (int stream = 0; stream < 3; ++stream) dup2(pipes[stream][stream == 0 ? 0 : 1], stream);
    signal(SIGPIPE, SIG_DFL);
    call(words[1], words[count - 2], words[count - 1]);
  }
  for (int stream = 0; stream < 3; ++stream) close(pipes[stream][stream == 0 ? 0 : 1]);
  struct pollfd ends[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = pipes[1][0], .events = POLLIN},
                           {.fd = pipes[2][0], .events = POLLIN}};
  const int others[3] = {pipes[0][1], STDOUT_FILENO, STDERR_FILENO};
  while (ends[1].fd >= 0 || ends[2].fd >= 0) {
    if (poll(ends, 3, -1) < 0 && errno != EINTR) fail("poll");
    for (int stream = 0; stream < 3; ++stream) {
      if (ends[stream].fd < 0 || ends[stream].revents == 0 || pass_on(ends[stream].fd, others[stream]))
        continue;
      close(stream == 0 ? others[0] : ends[stream].fd);
      ends[stream].fd = -1;
    }
  }
  int status = 0;
  if (waitpid(called, &status, 0) != called) fail("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : kOwnError;
}
