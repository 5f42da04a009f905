// take   opens a context on the first device that it sees and takes 1 GiB there, as a job does, says
// "device" and which it is, and holds it until the end of its input.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int Result;

static void* find(void* driver, const char* symbol) {
  void* found = driver == NULL ? NULL : dlsym(driver, symbol);
  if (found == NULL) exit(1);
  return found;
}

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  Result (*init)(unsigned) = find(driver, "cuInit");
  Result (*get)(int*, int) = find(driver, "cuDeviceGet");
  Result (*bus_id)(char*, int, int) = find(driver, "cuDeviceGetPCIBusId");
  Result (*create)(void**, unsigned, int) = find(driver, "cuCtxCreate_v2");
  Result (*allocate)(unsigned long long*, size_t) = find(driver, "cuMemAlloc_v2");
  int device;
  char place[32];
  void* context;
  unsigned long long memory;
  if (init(0) != 0 || get(&device, 0) != 0 || bus_id(place, sizeof place, device) != 0) return 1;
  if (create(&context, 0, device) != 0 || allocate(&memory, 1ULL << 30) != 0) return 1;
  printf("device %s\n", place);
  fflush(stdout);
  char end;
  return read(STDIN_FILENO, &end, 1) == 0 ? 0 : 1;
}
