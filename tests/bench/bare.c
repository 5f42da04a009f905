// The limit of `berth pick`: the driver calls that it makes when the topology is known, in its
// order, and one line printed. No deadline, no lease, no reason for a refusal, no second process.
// tests/counts compares the calls of both.
//
//     bare                  says which device
//     bare FILE COMMAND…    locks FILE and becomes the command on that device: the limit of `berth run`
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "driver.h"

static int become(char** words, const char* device) {
  const int file = open(words[0], O_RDWR | O_CREAT, 0666);
  if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) return 1;
  setenv("CUDA_VISIBLE_DEVICES", device, 1);
  execvp(words[1], words + 1);
  return 127;
}

int main(int words, char** arguments) {
  load_driver();
  Return (*init)(void) = find("nvmlInit_v2");
  Return (*driver_version)(char*, unsigned) = find("nvmlSystemGetDriverVersion");
  Return (*get_count)(unsigned*) = find("nvmlDeviceGetCount_v2");
  Return (*get_handle)(unsigned, Device*) = find("nvmlDeviceGetHandleByIndex_v2");
  Return (*get_uuid)(Device, char*, unsigned) = find("nvmlDeviceGetUUID");
  Return (*get_name)(Device, char*, unsigned) = find("nvmlDeviceGetName");
  Return (*mig_mode)(Device, unsigned*, unsigned*) = find("nvmlDeviceGetMigMode");
  Return (*field_values)(Device, int, struct FieldValue*) = find("nvmlDeviceGetFieldValues");
  Return (*get_memory)(Device, struct Memory*) = find("nvmlDeviceGetMemoryInfo_v2");
  Return (*compute)(Device, unsigned*, struct Process*) = find("nvmlDeviceGetComputeRunningProcesses_v3");
  Return (*graphics)(Device, unsigned*, struct Process*) = find("nvmlDeviceGetGraphicsRunningProcesses_v3");
  Return (*compute_mode)(Device, unsigned*) = find("nvmlDeviceGetComputeMode");

  static struct Process processes[kMostProcesses];
  char text[kTextBytes];
  unsigned count = 0;
  int picked = -1;
  if (init() != 0) return 1;
  get_count(&count);
  for (unsigned index = 0; index < count; ++index) {
    Device device;
    unsigned a, b;
    struct Memory memory = {.version = kMemoryVersion};
    unsigned computing = kMostProcesses;
    unsigned drawing = kMostProcesses;
    if (get_handle(index, &device) != 0) continue;
    get_uuid(device, text, sizeof text);
    get_name(device, text, sizeof text);
    mig_mode(device, &a, &b);
    ask_for_health(field_values, device);
    get_memory(device, &memory);
    compute(device, &computing, processes);
    graphics(device, &drawing, processes);
    compute_mode(device, &a);
    if (picked < 0 && computing == 0 && a == 0) picked = (int)index;
  }
  driver_version(text, sizeof text);
  snprintf(text, sizeof text, "%d", picked);
  if (words > 2) return become(arguments + 1, text);
  puts(text);
  return 0;
}
