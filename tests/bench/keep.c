// The limit of `berth submit`: a job that is on the disk when the command returns, whole or not at
// all. Two files are written into a folder and flushed, and the folder gets its name.
//
//     keep FOLDER    says the number of the job
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

extern char** environ;

static int flushed(int file) {
  return file >= 0 && fsync(file) == 0 && close(file) == 0;
}

static int write_request(void) {
  const char text[] = "word=true\n";
  const int file = open("new/job", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return write(file, text, sizeof text - 1) == sizeof text - 1 && flushed(file);
}

static int write_environment(void) {
  const int file = open("new/environment", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  for (char** each = environ; *each != NULL; ++each) {
    const ssize_t bytes = (ssize_t)strlen(*each) + 1;
    if (write(file, *each, (size_t)bytes) != bytes) return 0;
  }
  return flushed(file);
}

int main(int count, char** words) {
  if (count != 2 || chdir(words[1]) != 0) return 2;
  const int numbers = open("numbers", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (numbers < 0 || flock(numbers, LOCK_EX) != 0) return 1;
  if (mkdir("new", 0700) != 0 || !write_request() || !write_environment()) return 1;
  if (!flushed(open("new", O_RDONLY | O_DIRECTORY))) return 1;
  char text[24] = "";
  unsigned number = 0;
  if (pread(numbers, text, sizeof text - 1, 0) > 0) sscanf(text, "%u", &number);
  do snprintf(text, sizeof text, "%u", ++number);
  while (rename("new", text) != 0 && errno == ENOTEMPTY);
  const ssize_t bytes = (ssize_t)strlen(text);
  if (pwrite(numbers, text, (size_t)bytes, 0) != bytes || !flushed(open(".", O_RDONLY | O_DIRECTORY)))
    return 1;
  return puts(text) < 0;
}
