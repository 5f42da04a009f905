#include <time.h>
#include <unistd.h>

#include "nvml/call.h"

namespace berth::sim {
namespace {

constexpr std::int64_t kFirstInventedPid = 4'000'000;

// The rows that a handle shows. The parent of MIG instances shows them to root alone.
Code visible_rows(const Target& target, unsigned kinds, std::vector<LiveProcess>& rows) {
  if (!target.device.supports(Reading::processes)) return kNotSupported;
  if (target.instance == nullptr && target.device.mig_enabled && geteuid() != 0) return kNoPermission;
  for (LiveProcess& row : target.load().processes)
    if ((row.kinds & kinds) != 0 && (target.instance == nullptr || row.slot == target.slot))
      rows.push_back(std::move(row));
  for (unsigned i = 0; i < target.verdict.extra_rows; ++i)
    rows.push_back({kFirstInventedPid + i, kCompute, 100 * kMiB, -1, "", 0});
  return kSuccess;
}

std::uint64_t shown_bytes(const Target& target, const LiveProcess& row) {
  if (!target.device.supports(Reading::process_memory)) return kNotAvailable;
  return row.used_bytes.value_or(kNotAvailable);
}

template <typename Row>
void fill(const Target& target, const LiveProcess& process, Row& row) {
  row.pid = static_cast<std::uint32_t>(process.pid);
  row.used = shown_bytes(target, process);
  if constexpr (requires { row.gpu_instance; }) {
    const Instance* instance =
        process.slot < 0 ? nullptr : &target.device.instances[static_cast<std::size_t>(process.slot)];
    row.gpu_instance = instance != nullptr ? instance->gpu_instance : kNoInstance;
    row.compute_instance = instance != nullptr ? instance->compute_instance : kNoInstance;
  }
  if constexpr (requires { row.protected_used; }) row.protected_used = 0;
}

template <typename Row>
Code give_rows(const Target& target, const std::vector<LiveProcess>& rows, unsigned* count, Row* out) {
  const unsigned room = *count;
  const bool fits = rows.size() <= room;
  if (fits || !target.verdict.stale_count) *count = static_cast<unsigned>(rows.size());
  if (!fits) return kInsufficientSize;
  if (!rows.empty() && out == nullptr) return kInvalidArgument;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row row{};
    fill(target, rows[i], row);
    out[i] = row;
  }
  return kSuccess;
}

template <typename Row>
Code list_processes(const char* name, Handle handle, unsigned kinds, unsigned* count, void* out) {
  return on_device(name, handle, [&](const Target& target) {
    if (count == nullptr) return kInvalidArgument;
    std::vector<LiveProcess> rows;
    if (const Code code = visible_rows(target, kinds, rows); code != kSuccess) return code;
    if constexpr (sizeof(Row) == sizeof(ProcessV2))
      if (std::string_view(name).ends_with("_v3") && target.generation().wide_processes)
        return give_rows(target, rows, count, static_cast<ProcessWide*>(out));
    return give_rows(target, rows, count, static_cast<Row*>(out));
  });
}

std::uint64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// The processes that samples exist of; the driver has none with MIG on.
Code sampled_rows(const Target& target, std::vector<LiveProcess>& rows) {
  if (target.instance != nullptr || target.device.mig_enabled) return kNotSupported;
  if (!target.device.supports(Reading::utilization)) return kNotSupported;
  if (const Code code = visible_rows(target, kCompute | kGraphics | kMps, rows); code != kSuccess)
    return code;
  return rows.empty() ? kNotFound : kSuccess;
}

}  // namespace

#define SIM_PROCESS_LIST(NAME, ROW, KINDS)                           \
  SIM_EXPORT Code NAME(Handle handle, unsigned* count, void* out) {  \
    return list_processes<ROW>(__func__, handle, KINDS, count, out); \
  }

SIM_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, ProcessV1, kCompute)
SIM_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, ProcessV2, kCompute)
SIM_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, ProcessV2, kCompute)
SIM_PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, ProcessV1, kGraphics)
SIM_PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, ProcessV2, kGraphics)
SIM_PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, ProcessV2, kGraphics)
SIM_PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, ProcessV1, kMps)
SIM_PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, ProcessV2, kMps)
SIM_PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, ProcessV2, kMps)

SIM_EXPORT Code nvmlDeviceGetRunningProcessDetailList(Handle handle, ProcessDetailList* list) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (list == nullptr) return kInvalidArgument;
    if (list->version != version_word(sizeof(ProcessDetailList), 1))
      return static_cast<Code>(target.generation().version_mismatch());
    if (target.device.model.architecture < 9) return kNotSupported;
    constexpr unsigned kKinds[] = {kCompute, kGraphics, kMps};
    if (list->mode > 2) return kInvalidArgument;
    std::vector<LiveProcess> rows;
    if (const Code code = visible_rows(target, kKinds[list->mode], rows); code != kSuccess) return code;
    return give_rows(target, rows, &list->count, list->processes);
  });
}

SIM_EXPORT Code nvmlDeviceGetProcessUtilization(Handle handle, ProcessSample* out, unsigned* count,
                                                std::uint64_t last_seen_us) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (count == nullptr) return kInvalidArgument;
    std::vector<LiveProcess> rows;
    if (const Code code = sampled_rows(target, rows); code != kSuccess) return code;
    const std::uint64_t now = now_us();
    if (last_seen_us >= now) return kNotFound;
    const bool fits = out != nullptr && *count >= rows.size();
    *count = static_cast<unsigned>(rows.size());
    if (!fits) return kInsufficientSize;
    for (std::size_t i = 0; i < rows.size(); ++i)
      out[i] = {
          static_cast<std::uint32_t>(rows[i].pid), now, rows[i].sm_percent, rows[i].sm_percent / 2, 0, 0};
    return kSuccess;
  });
}

SIM_EXPORT Code nvmlDeviceGetProcessesUtilizationInfo(Handle handle, ProcessSamples* info) {
  return on_device(__func__, handle, [&](const Target& target) {
    if (info == nullptr) return kInvalidArgument;
    if (info->version != version_word(sizeof(ProcessSamples), 1))
      return static_cast<Code>(target.generation().version_mismatch());
    std::vector<LiveProcess> rows;
    if (const Code code = sampled_rows(target, rows); code != kSuccess) return code;
    const bool fits = info->samples != nullptr && info->count >= rows.size();
    info->count = static_cast<unsigned>(rows.size());
    if (!fits) return kInsufficientSize;
    for (std::size_t i = 0; i < rows.size(); ++i)
      info->samples[i] = {now_us(),
                          static_cast<std::uint32_t>(rows[i].pid),
                          rows[i].sm_percent,
                          rows[i].sm_percent / 2,
                          0,
                          0,
                          0,
                          0};
    return kSuccess;
  });
}

}  // namespace berth::sim
