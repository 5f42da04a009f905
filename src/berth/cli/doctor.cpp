// Each check is a function that adds what it found; none stops the others.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <set>
#include <span>

#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/cli/originals.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/device/health.h"
#include "berth/device/xid.h"
#include "berth/jobs/logout_warning.h"
#include "berth/lease/directory_health.h"
#include "berth/lease/left_behind.h"
#include "berth/lease/place.h"
#include "berth/lease/site_file.h"
#include "berth/request/job_mask.h"
#include "berth/request/selector.h"
#include "berth/source/cuda/cuda_trial.h"
#include "berth/sys/file.h"
#include "berth/verdict/device_memory.h"
#include "berth/verdict/original_locks.h"
#include "berth/view/doctor.h"
#include "berth/view/json.h"

namespace berth::cli {
namespace {

using view::Finding;
using view::Level;
using Findings = std::vector<Finding>;

/// "GPU 1", "GPUs 1, 4, 7".
std::string gpus(const std::vector<std::string>& labels) {
  return fmt::format("{} {}", labels.size() == 1 ? "GPU" : "GPUs", fmt::join(labels, ", "));
}

template <class Condition>
std::vector<std::string> labels_where(const Snapshot& snapshot, Condition condition) {
  std::vector<std::string> labels;
  for (const Device& device : snapshot.devices) {
    if (condition(device)) labels.push_back(label(device));
  }
  return labels;
}

std::vector<Vendor> vendors_in(const Snapshot& snapshot) {
  std::vector<Vendor> found;
  for (const Vendor& vendor : vendors()) {
    if (std::ranges::find(snapshot.devices, vendor.name, &Device::vendor) != snapshot.devices.end())
      found.push_back(vendor);
  }
  return found;
}

Vendor vendor_of_first(const Snapshot& snapshot) {
  return snapshot.devices.empty() ? vendors().front() : vendor_of(snapshot.devices.front());
}

void check_driver(const Result<Snapshot>& read, Findings& findings) {
  if (!read) {
    findings.push_back(
        {Level::fail, "driver", read.error().message, "without it nothing can be picked or leased"});
    return;
  }
  const Snapshot& snapshot = *read;
  std::string found = fmt::format("{} answers by {}, with {}",
                                  snapshot.driver_version.empty() ? "the driver" : snapshot.driver_version,
                                  snapshot.source, counted(snapshot.devices.size(), "device"));
  if (snapshot.stale_reason) {
    findings.push_back({Level::fail, "driver", *snapshot.stale_reason,
                        fmt::format("`dmesg | grep -i {}` shows what the driver reported; often only a "
                                    "reboot helps",
                                    vendor_of_first(snapshot).log_pattern)});
  } else if (snapshot.devices.empty()) {
    findings.push_back({Level::warn, "driver", std::move(found),
                        fmt::format("in a container, start it with the GPUs ({})",
                                    vendor_of_first(snapshot).container_help)});
  } else {
    findings.push_back({Level::pass, "driver", std::move(found), ""});
  }
  for (const std::string& note : snapshot.notes) findings.push_back({Level::warn, "driver", note, ""});
}

/// The library and the kernel module come apart when a driver is upgraded under a running machine.
void check_versions(const Result<Snapshot>& read, Findings& findings) {
  if (!read || !command::variable("BERTH_SIM").empty() || read->driver_version.empty()) return;
  const Vendor vendor = vendor_of_first(*read);
  if (!vendor.one_version) return;
  const auto module = sys::read_whole(fmt::format("/sys/module/{}/version", vendor.module));
  if (!module) return;
  const std::string loaded = module->substr(0, module->find_first_of(" \n"));
  // Behind it are those of other makers.
  const std::string library = read->driver_version.substr(0, read->driver_version.find(','));
  if (loaded == library) {
    findings.push_back({Level::pass, "driver versions", "library and kernel module are both " + loaded, ""});
    return;
  }
  findings.push_back({Level::fail, "driver versions",
                      fmt::format("the library is {}, the loaded kernel module {}", library, loaded),
                      fmt::format("reboot, or unload and load the {} modules", vendor.module)});
}

void check_devices(const Snapshot& snapshot, Findings& findings) {
  for (const Device& device : snapshot.devices) {
    const std::string name = "GPU " + label(device);
    const std::string reset =
        fmt::format("{} {} (first stop `berth serve` if it runs here: it keeps the driver open)",
                    vendor_of(device).reset_command, index_in_vendor(device, snapshot));
    if (device.state != DeviceState::ok) {
      findings.push_back(
          {Level::fail, name,
           fmt::format("{}{}{}", to_text(device.state), device.state_reason.empty() ? "" : ": ",
                       device.state_reason),
           fmt::format("it is not granted while it is so; {}, or a reboot, may mend it", reset)});
    }
    if (device.health.row_remap_failed.value_or(false)) {
      findings.push_back({Level::fail, name, "its memory has faults that can no longer be remapped",
                          "it is never granted; have it replaced"});
    } else if (const Recovery* recovery = recovery_of(device)) {
      findings.push_back({Level::fail, name, fmt::format("it {}, says the driver", recovery->needs),
                          fmt::format("it is not granted while it is so; {}",
                                      recovery->by_reset ? reset : std::string(recovery->how))});
    } else if (const std::string blemish = blemish_of(device); !blemish.empty()) {
      findings.push_back({Level::warn, name, blemish + "; it is taken after the others",
                          "reset it when it is free: " + reset});
    }
  }
}

/// What an application did is its own affair, and what was recorded costs nothing.
void check_xids(const Snapshot& snapshot, Findings& findings) {
  for (const Device& device : snapshot.devices) {
    const Xid* xid = xid_of(device.health.last_xid.value_or(0));
    if (device.mig || xid == nullptr || xid->kind != XidKind::hardware) continue;
    findings.push_back({Level::warn, "GPU " + label(device),
                        fmt::format("the kernel's log has {}", xid_in_words(xid->number)),
                        "its line stays in the log after a reset; if it comes again, have the GPU looked at: "
                        "`dmesg | grep -i xid`"});
  }
}

/// A GPU of which nobody can say that it is idle is never granted, and nothing else tells its admin.
void check_what_is_told(const Snapshot& snapshot, Findings& findings) {
  Facts facts;
  facts.snapshot = snapshot;
  if (const auto files = leasing::read_site_files(leasing::standard_site_file_paths()))
    facts.policy = files->policy;
  for (const Device& device : snapshot.devices) {
    if (device.state != DeviceState::ok || is_split(device)) continue;
    const bool lists = device.processes.has_value();
    const bool measures = device.memory.kind == MemoryKind::unified || memory_in_use(device.memory);
    if (lists && measures) continue;
    if (trusts_leases(device, facts)) {
      findings.push_back({Level::warn, "GPU " + label(device),
                          fmt::format("the driver does not tell {}: leases decide there (trust_leases in the "
                                      "site file), and a program that does not ask is not seen",
                                      lists ? "its memory in use" : "which processes use it"),
                          ""});
      continue;
    }
    findings.push_back(
        {Level::fail, "GPU " + label(device),
         fmt::format(
             "the driver does not tell {}, so nobody can say that it is idle, and it is never granted",
             lists ? "its memory in use" : "which processes use it"),
         lists ? "often a newer driver tells it. A GPU that uses the machine's memory, of a kind that this "
                 "Berth does not know, looks so too: try a newer Berth"
               : fmt::format("often a newer driver tells it; inside a virtual machine, ask whoever runs the "
                             "host. To let leases and memory in use decide: trust_leases = [{}] in "
                             "/etc/berth.toml",
                             device.index)});
  }
}

void check_persistence(const Snapshot& snapshot, Findings& findings) {
  const auto off = labels_where(snapshot, [](const Device& device) { return device.persistence == false; });
  if (!off.empty()) {
    findings.push_back({Level::warn, "persistence mode",
                        "off on " + gpus(off) + ": each look first wakes the card, for seconds",
                        std::string(vendor_of_first(snapshot).persistence_command)});
  } else if (std::ranges::any_of(snapshot.devices,
                                 [](const Device& device) { return device.persistence.has_value(); })) {
    findings.push_back({Level::pass, "persistence mode", "on", ""});
  }
}

void check_compute_mode(const Snapshot& snapshot, Findings& findings) {
  const auto prohibited = labels_where(
      snapshot, [](const Device& device) { return device.compute_mode == ComputeMode::prohibited; });
  if (prohibited.empty()) return;
  findings.push_back({Level::warn, "compute mode",
                      "prohibited on " + gpus(prohibited) + ": no job can use it",
                      std::string(vendor_of_first(snapshot).compute_mode_command)});
}

/// What follows for shares from MPS, and from an exclusive mode without it.
void check_mps(const Snapshot& snapshot, Findings& findings) {
  const auto served = labels_where(snapshot, has_mps);
  if (!served.empty())
    findings.push_back({Level::pass, "MPS",
                        fmt::format("its server is on {}: shares work there in each compute mode, its own "
                                    "processes are no outsiders, and jobs of one user at a time compute",
                                    gpus(served)),
                        ""});
  const auto exclusive = labels_where(snapshot, [](const Device& device) {
    return device.compute_mode == ComputeMode::exclusive_process && !has_mps(device);
  });
  if (!exclusive.empty())
    findings.push_back(
        {Level::pass, "compute mode",
         fmt::format("exclusive on {}: one job computes there at a time, and --memory needs MPS",
                     gpus(exclusive)),
         ""});
}

void check_numbering(const Snapshot& snapshot, Findings& findings) {
  const MaskVariables variables = leasing::inherited_masks();
  for (const Vendor& vendor : vendors_in(snapshot)) {
    if (numbering_is_ambiguous(vendor, snapshot, variables)) {
      findings.push_back(
          {Level::warn, "numbering",
           fmt::format(
               "the GPUs are of different models, and {} numbers them by speed, not as {} and Berth do",
               vendor.runtime, vendor.tool),
           fmt::format("export {}={} (`berth run` sets it by itself)", vendor.order_variable,
                       vendor.order_value)});
    } else if (snapshot.devices.size() > 1) {
      findings.push_back({Level::pass, "numbering",
                          fmt::format("{}, {} and Berth count alike", vendor.runtime, vendor.tool), ""});
    }
  }
  for (const Mask& mask : resolve_masks(variables, snapshot)) {
    findings.push_back({mask.notes.empty() ? Level::pass : Level::warn, "mask",
                        fmt::format("{}={} leaves {}{}{}", vendor_named(mask.vendor).mask_variable, mask.text,
                                    counted(mask.uuids.size(), "device"), mask.notes.empty() ? "" : "; ",
                                    fmt::join(mask.notes, "; ")),
                        mask.notes.empty() ? "" : "correct it, unset it, or use --mask ignore"});
  }
}

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

/// What helps if CUDA does not start.
std::string_view remedy_of(const source::CudaTrial& trial) {
  if (trial.end == source::CudaTrial::End::no_library)
    return "no job can compute without it: install the driver's CUDA library; in a container, set "
           "NVIDIA_DRIVER_CAPABILITIES=compute,utility";
  const auto* row = std::ranges::find(kCudaRemedies, trial.error, &CudaRemedy::error);
  return row != kCudaRemedies.end() ? row->words : "`dmesg | grep -i nvrm` shows what the driver reported";
}

/// The environment of a trial: without our own mask, or with the mask of one device.
source::CudaTrialOptions trial_options(const Device* device) {
  source::CudaTrialOptions options{.environment = command::own_environment(),
                                   .with_context = device != nullptr};
  const std::string mask(vendors().front().mask_variable);
  std::erase_if(*options.environment,
                [&](const std::string& variable) { return variable.starts_with(mask + '='); });
  if (device != nullptr) options.environment->push_back(fmt::format("{}={}", mask, device->uuid));
  return options;
}

/// The lease of one device, if it can be had at once.
std::optional<leasing::HeldLease> lease_of(const Device& device, const leasing::Session& session) {
  Request request;
  request.devices = {device.uuid};
  leasing::TicketWords words;
  words.command = "berth doctor";
  auto acquired = session.acquire(request, words);
  if (!acquired || !std::holds_alternative<leasing::HeldLease>(*acquired)) return std::nullopt;
  return std::get<leasing::HeldLease>(std::move(*acquired));
}

/// NVML may say that all is well while no program can start CUDA: after a suspend, or without the fabric
/// manager. A context is made only on devices that nobody has, under a lease, so that nobody takes it for
/// a program that did not ask.
void check_cuda(const Snapshot& snapshot, command::Environment& environment, source::SourceKind kind,
                Findings& findings) {
  constexpr std::string_view kNvidia = "nvidia";
  if (std::ranges::find(snapshot.devices, kNvidia, &Device::vendor) == snapshot.devices.end()) return;
  const auto tell = [&](std::string check, const source::CudaTrial& trial) {
    findings.push_back({trial.end == source::CudaTrial::End::no_library ? Level::warn : Level::fail,
                        std::move(check), source::trouble_of(trial), std::string(remedy_of(trial))});
  };
  const auto started = source::try_cuda(trial_options(nullptr));
  if (!started) return findings.push_back({Level::warn, "CUDA", started.error().message, ""});
  if (started->end != source::CudaTrial::End::starts) return tell("CUDA", *started);
  std::size_t tried = 0;
  // A lease would make the directory, and this command changes nothing.
  const bool has_directory = std::filesystem::exists(store::choose_lease_directory().path);
  const auto session = leasing::Session::open(environment.access(kind), MaskUse::ignore);
  for (const Device& device : snapshot.devices) {
    if (!has_directory || !session || device.vendor != kNvidia || device.state != DeviceState::ok ||
        is_split(device))
      continue;
    const auto lease = lease_of(device, *session);
    if (!lease) continue;
    ++tried;
    const auto trial = source::try_cuda(trial_options(&device));
    if (!trial || trial->end == source::CudaTrial::End::starts) continue;
    tell("GPU " + label(device), *trial);
    // Each further one could take as long.
    if (trial->end == source::CudaTrial::End::hangs) break;
  }
  findings.push_back({Level::pass, "CUDA",
                      fmt::format("starts, and sees {}; tried on {} that nobody has",
                                  counted(started->devices, "device"), counted(tried, "GPU")),
                      ""});
}

bool is_device_file(const std::string& path, const Vendor& vendor) {
  return std::ranges::any_of(vendor.device_files, [&](std::string_view pattern) {
    if (!pattern.ends_with('#')) return path == pattern;
    pattern.remove_suffix(1);
    return path.size() > pattern.size() && path.starts_with(pattern) &&
           path.find_first_not_of("0123456789", pattern.size()) == std::string::npos;
  });
}

/// The names of files in /dev, and in those of its folders that a vendor has files in, below /dev.
std::vector<std::string> names_in_dev(const Vendor& vendor) {
  std::vector<std::string> names;
  std::set<std::string> folders{""};
  for (const std::string_view pattern : vendor.device_files) {
    const std::size_t slash = pattern.rfind('/');
    if (slash != std::string_view::npos) folders.emplace(pattern.substr(0, slash + 1));
  }
  for (const std::string& folder : folders) {
    const auto opened = sys::open_directory(AT_FDCWD, "/dev/" + folder);
    if (!opened || !*opened) continue;
    const auto entries = sys::list_directory(opened->get());
    if (!entries) continue;
    for (const sys::DirectoryEntry& entry : *entries) names.push_back(folder + entry.name);
  }
  return names;
}

/// The files that a job opens. Not of a simulated machine, which has none.
void check_permissions(std::span<const Vendor> here, Findings& findings) {
  if (!command::variable("BERTH_SIM").empty()) return;
  std::vector<std::string> shut;
  std::size_t seen = 0;
  for (const Vendor& vendor : here) {
    for (const std::string& name : names_in_dev(vendor)) {
      if (!is_device_file(name, vendor)) continue;
      ++seen;
      const std::string path = "/dev/" + name;
      if (::access(path.c_str(), R_OK | W_OK) != 0) shut.push_back(path);
    }
  }
  if (!shut.empty()) {
    findings.push_back({Level::fail, "permissions", fmt::format("no access to {}", fmt::join(shut, ", ")),
                        "ask for membership in the group that owns them (often video or render)"});
  } else if (seen > 0) {
    findings.push_back({Level::pass, "permissions", "the GPUs' device files can be opened", ""});
  }
}

void check_lease_directory(Findings& findings) {
  for (leasing::Finding& each : leasing::examine_lease_directory(store::choose_lease_directory())) {
    // The two scales have the same three steps in the same order.
    findings.push_back({static_cast<Level>(each.health), std::move(each.check), std::move(each.found),
                        std::move(each.remedy)});
  }
}

/// A lease that outlives its command is meant so, or an ssh-agent or a tmux that somebody forgot.
void check_left_behind(Findings& findings) {
  const auto place = leasing::find_place({});
  if (!place) return;
  const auto books = place->store->look(store::Extent::leases);
  if (!books) return;
  for (const auto& [id, holders] : leasing::left_behind(*place->store, books->ledger)) {
    std::string names;
    for (const Holder& holder : holders)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", holder.pid, holder.command);
    findings.push_back(
        {Level::warn, "leases",
         fmt::format("the command of lease {} has ended, and what it started still holds it: {}",
                     short_name(books->ledger, id), names),
         fmt::format("berth release {} ends both; an ssh-agent or tmux that is to stay is "
                     "started outside of the lease",
                     short_name(books->ledger, id))});
  }
}

// "2 GPUs at the same time, and leases of 4h"
std::string allowance_in_words(const Allowance& allowance) {
  std::vector<std::string> parts;
  if (allowance.gpus)
    parts.push_back(
        fmt::format("{} GPU{} at the same time", *allowance.gpus, *allowance.gpus == 1 ? "" : "s"));
  if (allowance.lab_gpus)
    parts.push_back(fmt::format("{} GPU{} at the same time through the line of the lab", *allowance.lab_gpus,
                                *allowance.lab_gpus == 1 ? "" : "s"));
  if (allowance.waiting)
    parts.push_back(
        fmt::format("{} request{} in the queue", *allowance.waiting, *allowance.waiting == 1 ? "" : "s"));
  if (allowance.time_s) parts.push_back(fmt::format("leases of {}", time_for_people(*allowance.time_s)));
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::string limits_in_words(const Allowances& limits, std::string_view when) {
  std::string text;
  const auto tell = [&](std::string_view who, const Allowance& allowance) {
    if (allowance != Allowance())
      text += fmt::format("; {}{} may have at most {}", when, who, allowance_in_words(allowance));
  };
  tell("a user", limits.each);
  for (const auto& [user, allowance] : limits.of_users) tell(user, allowance);
  for (const auto& [group, allowance] : limits.of_groups)
    tell(fmt::format("who is in the group {}", group), allowance);
  return text;
}

std::string policy_in_words(const SitePolicy& policy) {
  std::string text = fmt::format("up to {} in use that nobody explains is tolerated",
                                 bytes_for_people(policy.hidden_tolerance_bytes));
  for (const ExcludedDevice& each : policy.excluded)
    text += fmt::format("; {} is excluded ({})", each.selector, each.reason);
  if (!policy.ignored_programs.empty())
    text += fmt::format("; programs that do not count: {}", fmt::join(policy.ignored_programs, ", "));
  if (!policy.ignored_users.empty())
    text += fmt::format("; users that do not count: {}", fmt::join(policy.ignored_users, ", "));
  if (policy.shares_per_gpu) text += fmt::format("; a GPU has at most {} shares", *policy.shares_per_gpu);
  if (!policy.host.name.empty()) text += fmt::format("; this machine is called {}", policy.host.name);
  if (!policy.host.labels.empty())
    text += fmt::format("; its labels: {}", fmt::join(policy.host.labels, ", "));
  for (const OriginalLock& row : kOriginalLocks) {
    if (const auto& paths = policy.*row.paths; !paths.empty())
      text += fmt::format("; the locks of originals of {} count: {}", row.program, fmt::join(paths, ", "));
  }
  if (policy.default_wait_s)
    text += fmt::format("; a wait lasts at most {}", duration_for_people(*policy.default_wait_s));
  if (policy.commands != CommandTelling::full)
    text += policy.commands == CommandTelling::none ? "; others' commands are not told"
                                                    : "; of others' commands the program is told";
  if (policy.idle_leftovers_s)
    text += fmt::format(
        "; processes that a command leaves behind keep its lease for at most {} after they last computed",
        duration_for_people(*policy.idle_leftovers_s));
  if (policy.idle_leases_s)
    text +=
        fmt::format("; a job of `berth run` on whose GPUs nothing computes for {} yields to whoever waits",
                    duration_for_people(*policy.idle_leases_s));
  text += fmt::format("; a job without a time limit is assumed to last {}",
                      time_for_people(policy.line.assumed_s));
  if (const std::string_view rule = traits_of(policy.line.order).rule; !rule.empty())
    text += fmt::format("; {}", rule);
  text += policy.line.backfill ? "; later jobs fill gaps" : "; no job starts before an earlier rival";
  text += limits_in_words(policy.limits.always, "");
  for (const HourlyAllowances& each : policy.limits.hours)
    text += limits_in_words(each.limits, fmt::format("{}: ", each.when.text));
  text += fmt::format("; the output of a job takes at most {}", bytes_for_people(policy.job_output_bytes));
  text += policy.keep_jobs_s
              ? fmt::format(", and a job that is over is kept for {}", time_for_people(*policy.keep_jobs_s))
              : ", and a job that is over is kept until its user forgets it";
  if (policy.tenant_gpus) text += fmt::format("; a program has {} GPUs at once at most", *policy.tenant_gpus);
  if (policy.tenant_time_s)
    text += fmt::format("; a job of a program takes at most {}", time_for_people(*policy.tenant_time_s));
  if (policy.most_time_s)
    text +=
        fmt::format("; a lease lasts at most {}, even without --time", time_for_people(*policy.most_time_s));
  return text;
}

/// A limit of somebody whom the machine does not know holds for nobody, and nobody notices.
void check_names(const Allowances& limits, Findings& findings) {
  const auto warn = [&](std::string_view what, const std::string& name) {
    findings.push_back(
        {Level::warn, "site file",
         fmt::format("[limits.{0}s] names {1}, and this machine knows no such {0}", what, name),
         "that limit holds for nobody: check the spelling"});
  };
  for (const auto& [user, allowance] : limits.of_users) {
    if (!sys::is_user(user)) warn("user", user);
  }
  for (const auto& [group, allowance] : limits.of_groups) {
    if (!sys::is_group(group)) warn("group", group);
  }
}

/// A selector that is misspelt, or that is of a card that was taken out.
void check_excluded(const SitePolicy& policy, const Snapshot& snapshot, Findings& findings) {
  for (const ExcludedDevice& each : policy.excluded) {
    if (!devices_named(each.selector, snapshot).empty()) continue;
    findings.push_back(
        {Level::warn, "site file",
         fmt::format("[[excluded]] names device {}, and this machine has no such GPU", each.selector),
         "that rule excludes nothing: `berth list` shows the index of each GPU"});
  }
}

void check_site_files(const Result<Snapshot>& read, Findings& findings) {
  const auto files = leasing::read_site_files(leasing::standard_site_file_paths());
  if (!files) {
    findings.push_back(
        {Level::fail, "site file", files.error().message, "nothing is granted until it is corrected"});
    return;
  }
  for (const std::string& key : files->policy.not_understood)
    findings.push_back({Level::fail, "site file", key, "nothing is granted until it is corrected"});
  if (!files->policy.not_understood.empty()) return;
  findings.push_back({Level::pass, "site file",
                      fmt::format("{}: {}",
                                  files->read.empty() ? "none, so the defaults hold"
                                                      : fmt::format("{}", fmt::join(files->read, " and ")),
                                  policy_in_words(files->policy)),
                      ""});
  check_names(files->policy.limits.always, findings);
  for (const HourlyAllowances& each : files->policy.limits.hours) check_names(each.limits, findings);
  if (read) check_excluded(files->policy, *read, findings);
}

void check_logout(Findings& findings) {
  if (const auto warning = jobs::logout_warning())
    findings.push_back({Level::warn, "jobs", warning->what, warning->advice});
}

class Doctor : public command::Command {
 public:
  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.about =
        "Looks at everything that leases and readings depend on, and says how to mend what is wrong. Starts "
        "CUDA once in a process of its own, and tries each GPU that nobody has. Changes nothing. "
        "The status is 0 unless something FAILs.";
    syntax.options.push_back(
        {"Options", 0, "json", "", "as JSON (docs/schema/doctor.json)", {}, command::raise_flag(json_)});
    syntax.options.push_back(command::source_option(kind_));
    return syntax;
  }

  Result<command::Output> run(command::Environment& environment, const std::vector<std::string>&) override {
    const Findings findings = examine(environment);
    const bool failed =
        std::ranges::any_of(findings, [](const Finding& each) { return each.level == Level::fail; });
    return command::Output{.out = json_ ? view::doctor_json(findings)
                                        : view::doctor_report(findings, "leases or readings are",
                                                              command::Environment::style_of(1)),
                           .status = failed ? 1 : 0};
  }

 private:
  Findings examine(command::Environment& environment) const {
    Findings findings;
    const auto source = environment.source(kind_);
    const Result<Snapshot> read =
        source ? (*source)->read(readings_for_listing()) : std::unexpected(source.error());
    check_driver(read, findings);
    check_versions(read, findings);
    if (read) {
      check_devices(*read, findings);
      check_xids(*read, findings);
      check_what_is_told(*read, findings);
      check_persistence(*read, findings);
      check_compute_mode(*read, findings);
      check_mps(*read, findings);
      check_numbering(*read, findings);
      check_cuda(*read, environment, kind_, findings);
    }
    const std::vector<Vendor> here = read ? vendors_in(*read) : std::vector<Vendor>{};
    check_permissions(here.empty() ? vendors() : here, findings);
    check_lease_directory(findings);
    check_left_behind(findings);
    check_site_files(read, findings);
    check_logout(findings);
    std::error_code ignored;
    std::ranges::copy(distributions_beside_ours(std::filesystem::canonical("/proc/self/exe", ignored)),
                      std::back_inserter(findings));
    return findings;
  }

  source::SourceKind kind_ = source::SourceKind::kAutomatic;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<command::Command> make_doctor() {
  return std::make_unique<Doctor>();
}

}  // namespace berth::cli
