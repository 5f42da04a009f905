// A job of the chaos test. It occupies what it was given in a way that has nothing to do with
// Berth's locks: each part of a device is a name that one process tree only can bind (abstract Unix
// sockets), and the kernel frees a name with the last process that has it. So a second owner of a
// part shows itself.
//
// job PLACE PARTS LOG WANTED LIFE_MS FORM     WANTED parts of each device; FORM is one of
//   plain    ends after its life          fork     a child has the last half of it
//   daemon   so, in a session of its own  exec     becomes another program half-way
//   signal   kills itself                 go-on    what `exec` becomes
// job PLACE PARTS LOG WANTED LIFE_MS flock FILE INDEX     takes a device as flock(1) would, if it is free

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// Above the lease's own, so that a killed process gives these up first.
enum { kFirstDescriptor = 200, kPatienceMs = 20 };

static void wait_ms(int milliseconds) {
  const struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static void note(const char* log, const char* what, const char* device) {
  char line[160];
  const int length = snprintf(line, sizeof line, "%s %d %s\n", what, getpid(), device);
  const int file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (write(file, line, (size_t)length) != length) abort();
  close(file);
}

static int bind_part(const char* place, const char* device, int part) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int length =
      snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s/%s/%d", place, device, part);
  const int created = socket(AF_UNIX, SOCK_STREAM, 0);
  const int file = fcntl(created, F_DUPFD, kFirstDescriptor);
  close(created);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  if (bind(file, (const struct sockaddr*)&address, size) == 0) return 1;
  close(file);
  return 0;
}

/// The socket that has this name, as /proc/PID/fd shows it. False: none has it.
static int find_socket(const char* place, const char* device, int part, char* shown, size_t size) {
  char name[128], line[512];
  snprintf(name, sizeof name, "@%s/%s/%d\n", place, device, part);
  FILE* sockets = fopen("/proc/net/unix", "re");
  if (sockets == NULL) abort();
  int found = 0;
  while (!found && fgets(line, sizeof line, sockets) != NULL) {
    unsigned long inode = 0;
    int path = 0;
    found =
        sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %n", &inode, &path) == 1 && strcmp(line + path, name) == 0;
    if (found) snprintf(shown, size, "socket:[%lu]", inode);
  }
  fclose(sockets);
  return found;
}

/// Whether a process has this socket among its files. One that is ending has no files any more,
/// though the kernel may still be about to close them.
static int is_a_file(const char* shown) {
  glob_t files;
  int found = 0;
  if (glob("/proc/[0-9]*/fd/[0-9]*", GLOB_NOSORT, NULL, &files) != 0) return 0;
  for (size_t i = 0; i < files.gl_pathc && !found; ++i) {
    char target[64];
    const ssize_t length = readlink(files.gl_pathv[i], target, sizeof target - 1);
    if (length > 0) target[length] = 0, found = strcmp(target, shown) == 0;
  }
  globfree(&files);
  return found;
}

static int living_owners(const char* place, const char* device, int parts) {
  int living = 0;
  for (int part = 0; part < parts; ++part) {
    char shown[64];
    living += find_socket(place, device, part, shown, sizeof shown) && is_a_file(shown);
  }
  return living;
}

// A process that is being killed may still have its names after its locks have ended: for a moment,
// or for long where the processors are busy.
static void occupy(const char* place, const char* log, const char* device, int parts, int wanted) {
  int found = 0;
  for (int waited = 0; found < wanted; ++waited) {
    if (waited > kPatienceMs && living_owners(place, device, parts) - found > parts - wanted)
      return note(log, "OVERLAP", device);
    if (waited > 0) wait_ms(1);
    for (int part = 0; part < parts && found < wanted; ++part) found += bind_part(place, device, part);
  }
}

int main(int count, char** words) {
  if (count < 7) return 2;
  const char *place = words[1], *log = words[3], *form = words[6];
  const int parts = atoi(words[2]), wanted = atoi(words[4]), life_ms = atoi(words[5]);
  note(log, "pid", form);
  if (strcmp(form, "flock") == 0) {
    const int file = open(words[7], O_RDONLY | O_CLOEXEC);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) return 0;
    occupy(place, log, words[8], parts, wanted);
    wait_ms(life_ms);
    return 0;
  }
  if (strcmp(form, "go-on") != 0) {
    char* devices = strdup(getenv("CUDA_VISIBLE_DEVICES"));
    for (char* device = strtok(devices, ","); device != NULL; device = strtok(NULL, ","))
      occupy(place, log, device, parts, wanted);
  }
  wait_ms(life_ms / 2);
  if (strcmp(form, "fork") == 0 || strcmp(form, "daemon") == 0) {
    if (fork() > 0) return 0;
    if (strcmp(form, "daemon") == 0) setsid();
    note(log, "pid", form);
  } else if (strcmp(form, "exec") == 0) {
    words[6] = "go-on";
    execv("/proc/self/exe", words);
  } else if (strcmp(form, "signal") == 0) {
    raise(SIGSEGV);
  }
  wait_ms(life_ms / 2);
  return 0;
}
