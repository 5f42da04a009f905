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

/// One of the values that are asked for together.
struct FieldValue {
  unsigned field, scope;
  long long time_us, latency_us;
  unsigned type, result;
  unsigned long long value;
};

enum { kMostFields = 5 };
/// What the driver knows of a card's health.
static const unsigned kHealth[kMostFields] = {4, 31, 144, 145, 230};

static inline void ask_for_health(Return (*field_values)(Device, int, struct FieldValue*), Device device) {
  struct FieldValue values[kMostFields] = {{0}};
  for (int i = 0; i < kMostFields; ++i) values[i].field = kHealth[i];
  field_values(device, kMostFields, values);
}

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
