#include "berth/doctor/doctor_cuda.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/source/cuda/cuda_trial.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"

namespace berth::doctor {
namespace {

using view::Finding;

struct CudaRemedy {
  int error;
  std::string_view words;
};
constexpr std::array<CudaRemedy, 11> kCudaRemedies{{
    {34, "the stub of libcuda.so.1 is found first: take the toolkit's `stubs` folder off LD_LIBRARY_PATH"},
    {36,
     "the driver is too old for this libcuda.so.1: upgrade the driver, or take the library of a newer "
     "one (cuda-compat) off LD_LIBRARY_PATH"},
    {46, "another process has it, or its compute mode forbids it: `nvidia-smi -q -d COMPUTE` shows the mode"},
    {100,
     "the device files may be missing: `sudo nvidia-modprobe -u -c=0` makes them; in a container, start "
     "it with the GPUs (docker run --gpus all)"},
    {214, "its memory has errors that cannot be corrected: reset it when it is free"},
    {304,
     "the operating system or a cgroup blocks /dev/nvidia-uvm: in a container, start it with the GPUs "
     "(docker run --gpus all)"},
    {802, "GPUs on NVSwitch need the fabric manager: sudo systemctl start nvidia-fabricmanager"},
    {803,
     "the library and the kernel module are of different versions: reboot, or unload and load the nvidia "
     "modules"},
    {804,
     "this GPU cannot use a library that is newer than its driver: take cuda-compat off LD_LIBRARY_PATH"},
    {805,
     "the control daemon of MPS does not answer: start it (nvidia-cuda-mps-control -d), or unset "
     "CUDA_MPS_PIPE_DIRECTORY"},
    {999,
     "after a suspend this helps: sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm; else `dmesg | grep "
     "-i nvrm` says why"},
}};

/// The remedy if CUDA does not start.
std::string_view remedy_of(const source::CudaTrial& trial) {
  if (trial.end == source::CudaTrial::End::no_library)
    return "no job can compute without it: install the driver's CUDA library; in a container, set "
           "NVIDIA_DRIVER_CAPABILITIES=compute,utility";
  const auto* row = std::ranges::find(kCudaRemedies, trial.error, &CudaRemedy::error);
  return row != kCudaRemedies.end() ? row->words : "`dmesg | grep -i nvrm` shows what the driver reported";
}

bool runs_cuda(const Device& device) {
  return vendor_of(device).runs_cuda;
}

/// A trial of all devices: without our own mask.
source::CudaTrialOptions trial_of_all(std::vector<std::string> environment, const Vendor& vendor) {
  std::erase_if(environment, [&](std::string_view variable) {
    return variable.starts_with(vendor.mask_variable) &&
           variable.substr(vendor.mask_variable.size()).starts_with('=');
  });
  return {.environment = std::move(environment)};
}

/// A trial of this device alone.
source::CudaTrialOptions trial_of(const Device& device, std::vector<std::string> environment) {
  const Vendor vendor = vendor_of(device);
  source::CudaTrialOptions options = trial_of_all(std::move(environment), vendor);
  options.environment->push_back(fmt::format("{}={}", vendor.mask_variable, device.uuid));
  options.with_context = true;
  return options;
}

/// The lease of one device; nullopt: it cannot be had at once. Error: no device can be had.
Result<std::optional<leasing::HeldLease>> lease_of(const Device& device, const leasing::Session& session) {
  Request request;
  request.devices = {device.uuid};
  leasing::TicketWords words;
  words.command = "berth doctor";
  BERTH_LET(auto acquired, session.acquire(request, words));
  if (auto* held = std::get_if<leasing::HeldLease>(&acquired)) return std::optional(std::move(*held));
  return std::nullopt;
}

/// Of the environment, the installation, or who else is there: CUDA would say the same of any
/// device, or something else in a moment.
bool speaks_of_device(const source::CudaTrial& trial) {
  constexpr std::array<int, 10> kOfOthers{2, 34, 35, 36, 46, 100, 101, 803, 804, 805};
  switch (trial.end) {
    case source::CudaTrial::End::no_library:
    case source::CudaTrial::End::starts:
      return false;
    case source::CudaTrial::End::refused:
      return std::ranges::find(kOfOthers, trial.error) == kOfOthers.end();
    case source::CudaTrial::End::hangs:
    case source::CudaTrial::End::crashes:
      break;
  }
  return true;
}

}  // namespace

std::string why_cuda_fails_on(const Device& device, std::vector<std::string> environment) {
  if (!runs_cuda(device)) return "";
  const auto trial = source::try_cuda(trial_of(device, std::move(environment)));
  return trial && speaks_of_device(*trial) ? source::trouble_of(*trial) : "";
}

std::vector<Finding> examine_cuda(const Snapshot& snapshot, const leasing::SourceAccess& access,
                                  const std::vector<std::string>& environment) {
  std::vector<Finding> findings;
  const auto first = std::ranges::find_if(snapshot.devices, runs_cuda);
  if (first == snapshot.devices.end()) return findings;
  const auto tell = [&](std::string check, const source::CudaTrial& trial) {
    findings.push_back(
        {trial.end == source::CudaTrial::End::no_library ? view::Level::warn : view::Level::fail,
         std::move(check), source::trouble_of(trial), std::string(remedy_of(trial))});
  };
  const auto started = source::try_cuda(trial_of_all(environment, vendor_of(*first)));
  if (!started) {
    findings.push_back({view::Level::warn, "CUDA", started.error().message, ""});
    return findings;
  }
  if (started->end != source::CudaTrial::End::starts) {
    tell("CUDA", *started);
    return findings;
  }
  std::size_t tried = 0;
  // A lease would make the directory, and this command changes nothing.
  const bool has_directory = std::filesystem::exists(store::choose_lease_directory().path);
  const auto session = leasing::Session::open(access, MaskUse::ignore);
  for (const Device& device : snapshot.devices) {
    if (!has_directory || !session || !runs_cuda(device) || device.state != DeviceState::ok ||
        is_split(device))
      continue;
    const auto lease = lease_of(device, *session);
    // The gate is shut, as the look at the lease directory tells. Each further one would wait.
    if (!lease) break;
    if (!*lease) continue;
    ++tried;
    const auto trial = source::try_cuda(trial_of(device, environment));
    if (!trial || trial->end == source::CudaTrial::End::starts) continue;
    tell("GPU " + label(device), *trial);
    // Each further one could take as long.
    if (trial->end == source::CudaTrial::End::hangs) break;
  }
  findings.push_back({view::Level::pass, "CUDA",
                      fmt::format("starts, and sees {}; tried on {} that nobody has",
                                  counted(started->devices, "device"), counted(tried, "GPU")),
                      ""});
  return findings;
}

std::vector<view::Finding> examine_passed_over(const Snapshot& snapshot) {
  std::vector<view::Finding> findings;
  const auto domain = leasing::find_domain({});
  if (!domain) return findings;
  const auto books = domain->store->look(store::Extent::leases);
  if (!books) return findings;
  const auto told = leasing::told_passed_over(domain->store->outcomes(), books->ledger, snapshot,
                                              sys::milliseconds_since_boot());
  for (const Device& device : snapshot.devices) {
    const auto found = told.find(device.uuid);
    if (found == told.end()) continue;
    for (const PassedOverFor& each : found->second)
      findings.push_back(
          {view::Level::warn, "GPU " + label(device),
           fmt::format("passed over until {} for {}: {}", sys::wall_text(each.until_s), each.user,
                       each.reason),
           fmt::format(
               "`sudo dmesg | grep -i nvrm` may say what is wrong with it; `berth include {}` by this "
               "user, or by root, lets the jobs have it again",
               label(device))});
  }
  return findings;
}

namespace {

namespace fs = std::filesystem;

// As pip writes a distribution's name into the name of its folder.
constexpr std::array<std::string_view, 5> kOriginals{"gpu_scheduler", "gpu_utilities", "gpuselect", "nvgpu",
                                                     "safe_gpu"};

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator each(folder, ignored), end; each != end; each.increment(ignored))
    found.push_back(each->path());
  std::ranges::sort(found);
  return found;
}

/// The names of the folders that pip leaves of a distribution.
std::vector<std::string> installed(const fs::path& prefix) {
  std::vector<std::string> names;
  for (const fs::path& python : children(prefix / "lib")) {
    if (!python.filename().native().starts_with("python3")) continue;
    for (const fs::path& entry : children(python / "site-packages")) {
      if (entry.extension() == ".dist-info") names.push_back(entry.stem());
    }
  }
  return names;
}

bool any_begins(const std::vector<std::string>& names, std::string_view beginning) {
  return std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(beginning); });
}

void look_for_originals(const std::vector<std::string>& names, std::vector<view::Finding>& findings) {
  if (!any_begins(names, "berth_gpu_dropin-")) return;
  for (const std::string_view original : kOriginals) {
    if (!any_begins(names, fmt::format("{}-", original))) continue;
    findings.push_back(
        {view::Level::warn, "drop-ins",
         fmt::format("the original {} is installed beside berth-gpu-dropin, which has the same module",
                     original),
         // pip takes the files that both have with the original, and finds berth-gpu-dropin in no
         // index.
         fmt::format("in a checkout of Berth: pip uninstall -y {} && "
                     "pip install --force-reinstall --no-deps ./python/dropin",
                     original)});
  }
}

// PyPI's `berth` is another project, with a module and a program of the same name.
void look_for_other_berth(const std::vector<std::string>& names, std::vector<view::Finding>& findings) {
  if (!any_begins(names, "berth_gpu-") || !any_begins(names, "berth-")) return;
  findings.push_back({view::Level::warn, "Python package",
                      "another project named berth is installed here beside berth-gpu, and both have the "
                      "module and the program berth",
                      "in a checkout of Berth: pip uninstall -y berth && "
                      "pip install --force-reinstall --no-deps ."});
}

}  // namespace

std::vector<view::Finding> distributions_beside_ours(const fs::path& program) {
  const std::vector<std::string> names = installed(program.parent_path().parent_path());
  std::vector<view::Finding> findings;
  look_for_other_berth(names, findings);
  look_for_originals(names, findings);
  return findings;
}

}  // namespace berth::doctor
