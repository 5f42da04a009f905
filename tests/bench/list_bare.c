// The limit of `berth list`: the driver calls that it makes, in its order, the same files of /proc
// for every process that the driver lists, and one line printed a device and a process.
#include <fcntl.h>
#include <unistd.h>

#include "driver.h"

typedef Return (*Number)(Device, unsigned*);
typedef Return (*NumberOf)(Device, unsigned, unsigned*);
typedef Return (*Text)(Device, char*, unsigned);

struct TemperatureNow {
  unsigned version, sensor;
  int celsius;
};

enum { kTemperatureVersion = 1 << 24 | (int)sizeof(struct TemperatureNow), kMostSeen = 4096 };

static char file[256 << 10];
static unsigned seen[kMostSeen];
static unsigned seen_count;

static long read_file(const char* path, size_t most) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const long length = read(fd, file, most);
  close(fd);
  return length;
}

// Who it is. A process on several devices is looked at once.
static void read_process(unsigned pid) {
  static const char* const names[] = {"stat", "status", "cmdline", "cgroup"};
  for (unsigned i = 0; i < seen_count; ++i)
    if (seen[i] == pid) return;
  if (seen_count < kMostSeen) seen[seen_count++] = pid;
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/%s", pid, names[i]);
    if (read_file(path, 4096) < 0) return;
  }
}

static void list_processes(const struct Process* processes, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    read_process(processes[i].pid);
    printf("  %u %llu\n", processes[i].pid, processes[i].used_bytes);
  }
}

int main(void) {
  load_driver();
  Return (*init)(void) = find("nvmlInit_v2");
  Return (*driver_version)(char*, unsigned) = find("nvmlSystemGetDriverVersion");
  Return (*cuda_version)(int*) = find("nvmlSystemGetCudaDriverVersion");
  Return (*get_count)(unsigned*) = find("nvmlDeviceGetCount_v2");
  Return (*get_handle)(unsigned, Device*) = find("nvmlDeviceGetHandleByIndex_v2");
  const Text get_uuid = find("nvmlDeviceGetUUID");
  const Text get_name = find("nvmlDeviceGetName");
  Return (*mig_mode)(Device, unsigned*, unsigned*) = find("nvmlDeviceGetMigMode");
  const Number power = find("nvmlDeviceGetPowerUsage");
  const Number power_limit = find("nvmlDeviceGetEnforcedPowerLimit");
  Return (*temperature_now)(Device, struct TemperatureNow*) = dlsym(driver, "nvmlDeviceGetTemperatureV");
  const NumberOf temperature = find("nvmlDeviceGetTemperature");
  Return (*field_values)(Device, int, struct FieldValue*) = find("nvmlDeviceGetFieldValues");
  Return (*utilization)(Device, unsigned[2]) = find("nvmlDeviceGetUtilizationRates");
  Return (*get_memory)(Device, struct Memory*) = find("nvmlDeviceGetMemoryInfo_v2");
  Return (*compute)(Device, unsigned*, struct Process*) = find("nvmlDeviceGetComputeRunningProcesses_v3");
  Return (*graphics)(Device, unsigned*, struct Process*) = find("nvmlDeviceGetGraphicsRunningProcesses_v3");
  Return (*clients_of_mps)(Device, unsigned*, struct Process*) =
      find("nvmlDeviceGetMPSComputeRunningProcesses_v3");
  const Number compute_mode = find("nvmlDeviceGetComputeMode");

  static struct Process processes[kMostProcesses];
  char uuid[kTextBytes];
  char name[kTextBytes];
  char version[kTextBytes];
  unsigned count = 0;
  int cuda = 0;
  if (init() != 0) return 1;
  get_count(&count);
  driver_version(version, sizeof version);
  cuda_version(&cuda);
  printf("%s %d\n", version, cuda);
  for (unsigned index = 0; index < count; ++index) {
    Device device;
    unsigned a, b;
    unsigned watts = 0, degrees = 0, rates[2] = {0, 0};
    struct TemperatureNow now = {.version = kTemperatureVersion};
    struct Memory memory = {.version = kMemoryVersion};
    unsigned computing = kMostProcesses;
    unsigned drawing = kMostProcesses;
    unsigned clients = kMostProcesses;
    if (get_handle(index, &device) != 0) continue;
    get_uuid(device, uuid, sizeof uuid);
    get_name(device, name, sizeof name);
    mig_mode(device, &a, &b);
    power(device, &watts);
    power_limit(device, &a);
    if (temperature_now != NULL && temperature_now(device, &now) == 0)
      degrees = (unsigned)now.celsius;
    else
      temperature(device, 0, &degrees);
    ask_for_health(field_values, device);
    utilization(device, rates);
    get_memory(device, &memory);
    if (compute(device, &computing, processes) != 0) computing = 0;
    printf("%u %s %s %llu %llu %u %u %u\n", index, name, uuid, memory.used, memory.total, rates[0], watts,
           degrees);
    list_processes(processes, computing);
    if (graphics(device, &drawing, processes) != 0) drawing = 0;
    list_processes(processes, drawing);
    // Where nothing runs there is no server of MPS that could have clients.
    if (computing + drawing != 0 && clients_of_mps(device, &clients, processes) == 0)
      list_processes(processes, clients);
    compute_mode(device, &a);
  }
  read_file("/etc/passwd", sizeof file);
  return 0;
}
