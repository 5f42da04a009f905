#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "berth/base/error.h"
#include "berth/device/snapshot.h"
#include "berth/source/nvml/abi.h"

namespace berth::nvml {

/// An entry point under its names, newest first. All names have the same binary interface; what has
/// another is another Entry. It is looked up when it is first called.
template <class... Parameters>
struct Entry {
  std::array<const char*, 3> names;
  Return (*function)(Parameters...) = nullptr;
  bool looked_up = false;
};

/// The driver's library. Which functions it has is asked of it, never concluded from its version.
class Library {
 public:
  using Lookup = std::function<void*(const char* symbol)>;

  /// Loads libnvidia-ml.so.1 as any client does. Error: `no_driver`, with what to do.
  static Result<Library> load();
  /// With `lookup` for the loader: null for what the library does not have.
  explicit Library(Lookup lookup) : lookup_(std::move(lookup)) {}

  /// Calls; kFunctionNotFound when the library has none of the names.
  template <class... Parameters, class... Arguments>
  Return call(Entry<Parameters...>& entry, Arguments... arguments) {
    return has(entry) ? entry.function(arguments...) : kFunctionNotFound;
  }

  template <class... Parameters>
  bool has(Entry<Parameters...>& entry) {
    if (!entry.looked_up) {
      for (const char* symbol : entry.names) {
        if (entry.function != nullptr || symbol == nullptr) break;
        entry.function = reinterpret_cast<Return (*)(Parameters...)>(lookup_(symbol));
      }
      entry.looked_up = true;
    }
    return entry.function != nullptr;
  }
  /// Whether the library has this symbol; for what can only be told from its neighbours.
  bool has_symbol(const char* symbol) const { return lookup_(symbol) != nullptr; }

  using U = unsigned;
  template <class... More>
  using OfDevice = Entry<Handle, More...>;

  Entry<> init{{"nvmlInit_v2"}};
  Entry<> shutdown{{"nvmlShutdown"}};
  Entry<char*, U> driver_version{{"nvmlSystemGetDriverVersion"}};
  Entry<int*> cuda_version{{"nvmlSystemGetCudaDriverVersion"}};
  Entry<U*> count{{"nvmlDeviceGetCount_v2"}};
  Entry<U, Handle*> handle{{"nvmlDeviceGetHandleByIndex_v2"}};

  OfDevice<char*, U> uuid{{"nvmlDeviceGetUUID"}};
  OfDevice<char*, U> name{{"nvmlDeviceGetName"}};
  OfDevice<Pci*> pci{{"nvmlDeviceGetPciInfo_v3"}};
  OfDevice<int*, int*> capability{{"nvmlDeviceGetCudaComputeCapability"}};
  OfDevice<Memory2*> memory_v2{{"nvmlDeviceGetMemoryInfo_v2"}};
  OfDevice<Memory1*> memory{{"nvmlDeviceGetMemoryInfo"}};
  OfDevice<Utilization*> utilization{{"nvmlDeviceGetUtilizationRates"}};
  OfDevice<Temperature1*> temperature_v{{"nvmlDeviceGetTemperatureV"}};
  OfDevice<U, U*> temperature{{"nvmlDeviceGetTemperature"}};
  OfDevice<U*> power{{"nvmlDeviceGetPowerUsage"}};
  OfDevice<U*> power_limit{{"nvmlDeviceGetEnforcedPowerLimit"}};
  OfDevice<U, U*> clock{{"nvmlDeviceGetClockInfo"}};
  OfDevice<U*> fan{{"nvmlDeviceGetFanSpeed"}};
  OfDevice<U*> compute_mode{{"nvmlDeviceGetComputeMode"}};
  OfDevice<U*> persistence{{"nvmlDeviceGetPersistenceMode"}};
  OfDevice<U*> display_active{{"nvmlDeviceGetDisplayActive"}};
  OfDevice<U*> performance_state{{"nvmlDeviceGetPerformanceState"}};
  OfDevice<std::uint64_t*> throttle_reasons{
      {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}};
  OfDevice<int, FieldValue*> field_values{{"nvmlDeviceGetFieldValues"}};
  OfDevice<U*, U*, U*, U*> remapped_rows{{"nvmlDeviceGetRemappedRows"}};
  OfDevice<U, U, std::uint64_t*> ecc_errors{{"nvmlDeviceGetTotalEccErrors"}};
  OfDevice<U*> retired_pending{{"nvmlDeviceGetRetiredPagesPendingStatus"}};

  Entry<EventSet*> create_event_set{{"nvmlEventSetCreate"}};
  OfDevice<std::uint64_t, EventSet> register_events{{"nvmlDeviceRegisterEvents"}};
  // The older form fills less of the same struct.
  Entry<EventSet, Event*, U> wait_for_event{{"nvmlEventSetWait_v2", "nvmlEventSetWait"}};

  /// A reading that is one number of a GPU as the driver tells it, and nothing more.
  struct PlainReading {
    ReadingKind asked_with;
    Reading<unsigned> Device::* member;
    OfDevice<U*> entry;
  };
  std::array<PlainReading, 2> plain_readings{{
      {ReadingKind::modes, &Device::pcie_generation, {{"nvmlDeviceGetCurrPcieLinkGeneration"}}},
      {ReadingKind::modes, &Device::pcie_width, {{"nvmlDeviceGetCurrPcieLinkWidth"}}},
  }};

  OfDevice<U*, void*> compute_processes_v3{{"nvmlDeviceGetComputeRunningProcesses_v3"}};
  OfDevice<U*, void*> compute_processes_v2{{"nvmlDeviceGetComputeRunningProcesses_v2"}};
  OfDevice<U*, void*> compute_processes{{"nvmlDeviceGetComputeRunningProcesses"}};
  OfDevice<U*, void*> graphics_processes_v3{{"nvmlDeviceGetGraphicsRunningProcesses_v3"}};
  OfDevice<U*, void*> graphics_processes_v2{{"nvmlDeviceGetGraphicsRunningProcesses_v2"}};
  OfDevice<U*, void*> graphics_processes{{"nvmlDeviceGetGraphicsRunningProcesses"}};

  OfDevice<U*, void*> mps_processes_v3{{"nvmlDeviceGetMPSComputeRunningProcesses_v3"}};
  OfDevice<U*, void*> mps_processes_v2{{"nvmlDeviceGetMPSComputeRunningProcesses_v2"}};
  OfDevice<U*, void*> mps_processes{{"nvmlDeviceGetMPSComputeRunningProcesses"}};

  OfDevice<U*> accounting_mode{{"nvmlDeviceGetAccountingMode"}};
  OfDevice<U*, U*> accounting_pids{{"nvmlDeviceGetAccountingPids"}};
  OfDevice<U, AccountingStats*> accounting_stats{{"nvmlDeviceGetAccountingStats"}};

  OfDevice<U*, U*> mig_mode{{"nvmlDeviceGetMigMode"}};
  OfDevice<U*> mig_slots{{"nvmlDeviceGetMaxMigDeviceCount"}};
  OfDevice<U, Handle*> mig_handle{{"nvmlDeviceGetMigDeviceHandleByIndex"}};
  OfDevice<U*> gpu_instance{{"nvmlDeviceGetGpuInstanceId"}};
  OfDevice<U*> compute_instance{{"nvmlDeviceGetComputeInstanceId"}};

  OfDevice<Handle, U*> common_ancestor{{"nvmlDeviceGetTopologyCommonAncestor"}};
  OfDevice<U, U*> nvlink_state{{"nvmlDeviceGetNvLinkState"}};
  OfDevice<U, U*> nvlink_remote_type{{"nvmlDeviceGetNvLinkRemoteDeviceType"}};
  OfDevice<U, Pci*> nvlink_remote{{"nvmlDeviceGetNvLinkRemotePciInfo_v2"}};
  OfDevice<Handle, U, U*> p2p_status{{"nvmlDeviceGetP2PStatus"}};

 private:
  Lookup lookup_;
};

}  // namespace berth::nvml
