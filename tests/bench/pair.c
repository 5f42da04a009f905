// pair ROUNDS SECONDS COMMAND…   starts the command twice in the same instant, again and again, and says for
// each round which device each of the two got: the word after "device " in its stdout, or "-" for
// one that got none.
//
// Both must answer before either may end: a command keeps its device until the end of its input. It
// is ended when it has not answered in 10 s, or when SECONDS are over.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPatienceMs = 10000, kMostBytes = 4096, kWordBytes = 32 };

struct Script {
  pid_t pid;
  int input, output;
};

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void begin_script(int input, int output, char** command, _Atomic int* ready) {
  setpgid(0, 0);
  dup2(input, 0);
  dup2(output, 1);
  dup2(open("/dev/null", O_WRONLY), 2);
  // The two leave this loop within a microsecond of each other where there are two processors.
  for (++*ready; *ready < 2;) sched_yield();
  execvp(command[0], command);
  _exit(127);
}

static struct Script start(char** command, _Atomic int* ready) {
  int input[2], output[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) exit(1);
  const pid_t pid = fork();
  if (pid == 0) begin_script(input[0], output[1], command, ready);
  close(input[0]);
  close(output[1]);
  return (struct Script){pid, input[1], output[0]};
}

// The word that follows "device " in what it says, or "-".
static void hear(const struct Script* script, char* word) {
  static const char kBefore[] = "device ";
  char said[kMostBytes];
  size_t length = 0;
  strcpy(word, "-");
  while (length < sizeof said - 1) {
    struct pollfd told = {.fd = script->output, .events = POLLIN};
    if (poll(&told, 1, kPatienceMs) <= 0) return;
    const ssize_t more = read(script->output, said + length, sizeof said - 1 - length);
    if (more <= 0) return;
    length += (size_t)more;
    said[length] = '\0';
    const char* found = strstr(said, kBefore);
    if (found == NULL || strchr(found, '\n') == NULL) continue;
    sscanf(found + sizeof kBefore - 1, "%31s", word);
    return;
  }
}

static void end(const struct Script* script) {
  close(script->input);
  struct pollfd told = {.fd = script->output, .events = POLLIN};
  char rest[kMostBytes];
  while (poll(&told, 1, kPatienceMs) > 0 && read(script->output, rest, sizeof rest) > 0) {
  }
  kill(-script->pid, SIGKILL);
  close(script->output);
  waitpid(script->pid, NULL, 0);
}

int main(int count, char** words) {
  if (count < 4) return 2;
  _Atomic int* ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ready == MAP_FAILED) return 1;
  const double until = now_s() + atof(words[2]);
  for (int round = atoi(words[1]); round > 0 && now_s() < until; --round) {
    char first[kWordBytes], second[kWordBytes];
    *ready = 0;
    const struct Script one = start(words + 3, ready);
    const struct Script other = start(words + 3, ready);
    hear(&one, first);
    hear(&other, second);
    printf("%s %s\n", first, second);
    fflush(stdout);
    end(&one);
    end(&other);
  }
  return 0;
}
