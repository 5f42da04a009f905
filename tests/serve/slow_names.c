// Preloaded: a name service that does not answer for one name. What the test says in SLOW_NAME is
// looked up for ever, as is the user whose number it says in SLOW_UID; what it says in TWO_NAME has
// two addresses, 127.0.0.2 before 127.0.0.1.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_said(const char* name, const char* variable) {
  const char* said = getenv(variable);
  return said != NULL && name != NULL && strcmp(name, said) == 0;
}

int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints,
                struct addrinfo** found) {
  if (is_said(name, "SLOW_NAME")) {
    for (;;) pause();
  }
  int (*real)(const char*, const char*, const struct addrinfo*, struct addrinfo**) =
      dlsym(RTLD_NEXT, "getaddrinfo");
  if (!is_said(name, "TWO_NAME")) return real(name, service, hints, found);
  int failed = real("127.0.0.2", service, hints, found);
  return failed != 0 ? failed : real("127.0.0.1", service, hints, &(*found)->ai_next);
}

int getpwuid_r(uid_t uid, struct passwd* entry, char* buffer, size_t size, struct passwd** found) {
  const char* slow = getenv("SLOW_UID");
  if (slow != NULL && uid == (uid_t)strtoul(slow, NULL, 10)) {
    for (;;) pause();
  }
  int (*real)(uid_t, struct passwd*, char*, size_t, struct passwd**) = dlsym(RTLD_NEXT, "getpwuid_r");
  return real(uid, entry, buffer, size, found);
}
