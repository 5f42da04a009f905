// The part of libnvidia-ml.so.1 that the bare programs call, and their process list buffer.
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned Return;
typedef struct OpaqueDevice* Device;

struct Memory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

enum { kMemoryVersion = 2 << 24 | (int)sizeof(struct Memory), kMostProcesses = 64, kTextBytes = 96 };

static void* driver;

static inline void* find(const char* symbol) {
  void* found = dlsym(driver, symbol);
  if (found == NULL) {
    fprintf(stderr, "the driver has no %s\n", symbol);
    exit(1);
  }
  return found;
}

static inline void load_driver(void) {
  driver = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
}
