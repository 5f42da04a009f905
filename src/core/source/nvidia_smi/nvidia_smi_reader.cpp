#include "berth/source/nvidia_smi/nvidia_smi_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "berth/base/text.h"
#include "berth/source/nvidia_smi/smi_query.h"
#include "berth/source/nvml/library.h"
#include "berth/source/proc/kernel_files.h"
#include "berth/source/proc/process_details.h"
#include "berth/source/unified_memory.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::nvidia_smi {
namespace {

/// No machine has more; it bounds asking one by one.
constexpr unsigned kMostDevices = 64;

bool refuses_a_device(std::string_view text) {
  return text.contains("Unable to determine the device handle");
}
bool finds_none(std::string_view text) {
  return text.contains("No devices were found");
}

/// nvidia-smi --query-gpu, with fewer columns each time that one is refused.
Result<Printed> run_query(Query& query, std::vector<std::string> more, int listener) {
  for (;;) {
    std::vector<std::string> arguments{"--query-gpu=" + query.columns(), "--format=csv,noheader,nounits"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto printed = run(arguments, listener);
    if (!printed || printed->status == 0 || !query.drop_refused(printed->text)) return printed;
  }
}

bool is_on(const ReportedProcess& reported, const MigPlacement& placement) {
  return reported.gpu_instance == placement.gpu_instance &&
         reported.compute_instance == placement.compute_instance;
}

Reading<std::vector<Process>> processes_on(const ReportedGpu& gpu, const MigPlacement* placement) {
  if (!gpu.processes) return std::nullopt;
  std::vector<Process> processes;
  for (const ReportedProcess& reported : *gpu.processes) {
    if (placement == nullptr || is_on(reported, *placement)) processes.push_back(reported.process);
  }
  return processes;
}

Device make_instance(const Device& parent, const ReportedInstance& reported, const ListedInstance& listed,
                     const ReportedGpu& gpu, ReadingSet readings) {
  Device instance = parent;
  instance.uuid = listed.uuid;
  instance.name = parent.name.empty() ? "" : parent.name + " MIG " + listed.profile;
  instance.mig = reported.placement;
  instance.mig->parent_uuid = parent.uuid;
  instance.mig_enabled.reset();
  instance.memory = {};
  if (readings.has(ReadingKind::memory)) instance.memory = reported.memory;
  if (readings.has(ReadingKind::processes)) instance.processes = processes_on(gpu, &*instance.mig);
  return instance;
}

/// Takes away what was read for other reasons than that somebody asked for it.
void forget_unasked(Device& device, ReadingSet readings) {
  if (!readings.has(ReadingKind::name)) device.name.clear();
  if (!readings.has(ReadingKind::pci)) device.pci_bus_id.clear();
  if (!readings.has(ReadingKind::mig)) device.mig_enabled.reset();
}

void apply_unified_memory(Device& device) {
  const Reading<std::uint64_t>& total = device.memory.total_bytes;
  if ((!total || *total == 0) && source::is_integrated(device.name)) source::take_machine_memory(device);
  source::take_use_from_processes(device);
}

}  // namespace

Device refused_device(unsigned index, std::string_view message) {
  Device device;
  device.index = index;
  const std::string_view line = message.substr(0, message.find('\n'));
  device.state_reason = line;
  if (line.contains("GPU is lost")) {
    device.state = DeviceState::lost;
  } else if (line.contains("Insufficient Permissions")) {
    device.state = DeviceState::not_permitted;
  } else if (line.contains("requires reset")) {
    device.state = DeviceState::needs_reset;
  } else {
    device.state = DeviceState::failed;
  }
  return device;
}

std::vector<Device> join_report(std::vector<Device> devices, const std::vector<ReportedGpu>& report,
                                const std::vector<ListedInstance>& instances, ReadingSet readings) {
  std::vector<Device> joined;
  for (Device& device : devices) {
    joined.push_back(std::move(device));
    const auto gpu = std::ranges::find(report, joined.back().uuid, &ReportedGpu::uuid);
    if (gpu == report.end() || gpu->uuid.empty()) continue;
    if (readings.has(ReadingKind::health)) {
      joined.back().health.row_remap_pending = gpu->row_remap_pending;
      joined.back().health.row_remap_failed = gpu->row_remap_failed;
    }
    const Device parent = joined.back();
    if (parent.mig_enabled != true) {
      if (readings.has(ReadingKind::processes)) joined.back().processes = processes_on(*gpu, nullptr);
      continue;
    }
    for (const ReportedInstance& reported : gpu->instances) {
      const auto listed = std::ranges::find_if(instances, [&](const ListedInstance& i) {
        return i.parent_uuid == parent.uuid && i.slot == reported.placement.slot;
      });
      if (listed != instances.end())
        joined.push_back(make_instance(parent, reported, *listed, *gpu, readings));
    }
  }
  return joined;
}

std::string NvidiaSmiReader::print(const std::vector<std::string>& arguments) {
  const auto printed = run(arguments, listener_);
  return printed && printed->status == 0 ? printed->text : std::string();
}

Result<std::vector<Device>> NvidiaSmiReader::read_devices(ReadingSet readings, std::string& driver_version) {
  Query query(readings);
  BERTH_LET(const auto printed, run_query(query, {}, listener_));
  if (printed.status == 0 || finds_none(printed.text)) return query.devices(printed.text, driver_version);
  if (refuses_a_device(printed.text)) return read_one_by_one(readings, driver_version);
  return std::unexpected(error_of(printed));
}

/// nvidia-smi gives up on all devices at the first that it cannot open. Each alone, the others can
/// be read.
Result<std::vector<Device>> NvidiaSmiReader::read_one_by_one(ReadingSet readings,
                                                             std::string& driver_version) {
  std::vector<Device> devices;
  Query query(readings);
  for (unsigned index = 0; index < kMostDevices; ++index) {
    BERTH_LET(const auto printed, run_query(query, {"--id=" + std::to_string(index)}, listener_));
    if (refuses_a_device(printed.text)) {
      devices.push_back(refused_device(index, printed.text));
      continue;
    }
    if (finds_none(printed.text)) break;
    if (printed.status != 0) return std::unexpected(error_of(printed));
    auto found = query.devices(printed.text, driver_version);
    std::ranges::move(found, std::back_inserter(devices));
  }
  return devices;
}

void NvidiaSmiReader::add_reported(std::vector<Device>& devices, ReadingSet readings) {
  const bool split = readings.has(ReadingKind::mig) &&
                     std::ranges::any_of(devices, [](const Device& d) { return d.mig_enabled == true; });
  if (!split && !readings.has(ReadingKind::processes)) return;
  const bool all_well =
      std::ranges::all_of(devices, [](const Device& d) { return d.state == DeviceState::ok; });
  std::vector<ReportedGpu> report;
  std::vector<ListedInstance> instances;
  const auto add = [&](const std::vector<std::string>& which) {
    std::vector<std::string> arguments{"-q", "-x"};
    arguments.insert(arguments.end(), which.begin(), which.end());
    std::ranges::move(parse_report(print(arguments)), std::back_inserter(report));
    if (!split) return;
    arguments = {"-L"};
    arguments.insert(arguments.end(), which.begin(), which.end());
    std::ranges::move(parse_list(print(arguments)), std::back_inserter(instances));
  };
  if (all_well) {
    add({});
  } else {
    for (const Device& device : devices) {
      if (device.state == DeviceState::ok) add({"--id=" + device.uuid});
    }
  }
  devices = join_report(std::move(devices), report, instances, readings);
}

bool NvidiaSmiReader::found() {
  return is_installed();
}

Result<void> NvidiaSmiReader::read(const source::ReadRequest& request, source::Sink& sink) {
  const ReadingSet readings = request.readings;
  Snapshot head;
  head.taken_at_ns = sys::wall_now().count();
  head.source = "nvidia-smi";
  head.readings = readings;
  BERTH_LET(auto devices, read_devices(readings, head.driver_version));
  sink.head(head);
  add_reported(devices, readings);

  const source::Xids xids(readings);
  source::ProcessDescriber describer(names_);
  for (Device& device : devices) {
    if (readings.has(ReadingKind::memory) && device.state == DeviceState::ok) apply_unified_memory(device);
    if (readings.has(ReadingKind::process_details)) describer.describe(device);
    xids.note(device);
    forget_unasked(device, readings);
    sink.device(device);
  }
  if (readings.has(ReadingKind::process_details)) describer.finish(sink);
  if (readings.has(ReadingKind::topology)) {
    sink.note("nvidia-smi does not tell how the GPUs are joined in a form that programs can rely on.");
  }
  return {};
}

namespace {

constexpr std::size_t kLongestReport = 64 << 20;

/// Waits for output. False: the listener is gone.
bool wait_for_output(int output, int listener) {
  // Errors and hang-ups are reported unasked, and they are all that is to be known of the listener.
  pollfd watched[] = {{.fd = output, .events = POLLIN, .revents = 0},
                      {.fd = listener, .events = 0, .revents = 0}};
  while (poll(watched, 2, -1) < 0 && errno == EINTR) continue;
  return watched[1].revents == 0;
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

bool is_installed() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (access((std::string(rest.substr(0, colon)) + "/nvidia-smi").c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

Result<Printed> run(const std::vector<std::string>& arguments, int listener) {
  // Numbers with a decimal point, and messages that can be recognised.
  setenv("LC_ALL", "C", 1);
  // The parent of this process may have set SIGCHLD to be ignored, and then the end of a child is
  // not reported.
  signal(SIGCHLD, SIG_DFL);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return sys::fail_errno("making a pipe to nvidia-smi");
  const sys::Descriptor output(ends[0]);
  sys::Descriptor theirs(ends[1]);
  auto child = sys::Child::spawn(
      {.program = "nvidia-smi", .arguments = arguments, .output = theirs.get(), .error = theirs.get()});
  if (!child)
    return fail(ErrorCode::no_driver,
                "no NVIDIA driver: nvidia-smi cannot be started (" + child.error().message + ")");
  theirs.close();

  Printed printed;
  for (;;) {
    if (!wait_for_output(output.get(), listener)) {
      child->kill(SIGKILL);
      return fail(ErrorCode::failure, "nvidia-smi was stopped: nobody waits for it any more");
    }
    char piece[16 << 10];
    const ssize_t length = read(output.get(), piece, sizeof piece);
    if (length == 0) break;
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) {
      auto failed = sys::fail_errno("reading what nvidia-smi prints");
      child->kill(SIGKILL);
      return failed;
    }
    printed.text.append(piece, static_cast<std::size_t>(length));
    if (printed.text.size() > kLongestReport) {
      child->kill(SIGKILL);
      return fail(ErrorCode::failure, "nvidia-smi was stopped: it prints more than {} MiB",
                  kLongestReport >> 20U);
    }
  }
  const auto ending = child->wait(std::chrono::seconds(10));
  if (!ending || ending->signal != 0) {
    return fail(ErrorCode::failure,
                "nvidia-smi ended with " + (ending ? sys::to_text(*ending) : "its output still to come"));
  }
  printed.status = ending->exit_status;
  return printed;
}

Error error_of(const Printed& printed) {
  // Its statuses are the driver's own numbers, but not all numbers fit a status.
  const std::string_view text = printed.text;
  if (text.contains("version mismatch")) return nvml::error_of(nvml::kVersionMismatch);
  if (text.contains("Unknown Error")) return nvml::error_of(nvml::kUnknown);
  switch (static_cast<nvml::Return>(printed.status)) {
    case nvml::kNoPermission:
    case nvml::kDriverNotLoaded:
    case nvml::kLibraryNotFound:
      return nvml::error_of(static_cast<nvml::Return>(printed.status));
    default:
      return {ErrorCode::no_driver, "nvidia-smi failed with exit status " + std::to_string(printed.status) +
                                        ": " + std::string(first_line(text))};
  }
}

}  // namespace berth::nvidia_smi
