// Preloaded: a name service that does not answer for one name. What the test says in SLOW_NAME is looked up
// for ever.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints,
                struct addrinfo** found) {
  const char* slow = getenv("SLOW_NAME");
  if (slow != NULL && name != NULL && strcmp(name, slow) == 0) {
    for (;;) pause();
  }
  int (*real)(const char*, const char*, const struct addrinfo*, struct addrinfo**) =
      dlsym(RTLD_NEXT, "getaddrinfo");
  return real(name, service, hints, found);
}
