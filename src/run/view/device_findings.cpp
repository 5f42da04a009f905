#include "berth/view/device_findings.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/base/text_match.h"
#include "berth/device/health.h"
#include "berth/device/xid.h"
#include "berth/verdict/device_memory.h"
#include "berth/verdict/outsiders.h"
#include "berth/verdict/verdict.h"

namespace berth::view {
namespace {

using Findings = std::vector<Finding>;

/// "GPU 1", "GPUs 1, 4, 7".
std::string gpus(const std::vector<std::string>& labels) {
  return fmt::format("{} {}", labels.size() == 1 ? "GPU" : "GPUs", fmt::join(labels, ", "));
}

template <class Condition>
std::vector<std::string> labels_of_those(const Snapshot& snapshot, Condition condition) {
  std::vector<std::string> labels;
  for (const Device& device : snapshot.devices) {
    if (condition(device)) labels.push_back(label(device));
  }
  return labels;
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

/// An application's fault is its own affair, and a recorded Xid costs nothing.
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

/// A GPU of which nobody can say that it is idle is never granted, and nothing else tells its
/// admin.
void check_what_is_told(const Snapshot& snapshot, const SitePolicy& policy, Findings& findings) {
  Facts facts;
  facts.snapshot = snapshot;
  facts.policy = policy;
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
                             "host. To let leases and memory in use decide: trust_leases = [\"{}\"] in "
                             "/etc/berth.toml",
                             device.uuid)});
  }
}

void check_persistence(const Snapshot& snapshot, Findings& findings) {
  const auto off =
      labels_of_those(snapshot, [](const Device& device) { return device.persistence == false; });
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
  const auto prohibited = labels_of_those(
      snapshot, [](const Device& device) { return device.compute_mode == ComputeMode::prohibited; });
  if (prohibited.empty()) return;
  findings.push_back({Level::warn, "compute mode",
                      "prohibited on " + gpus(prohibited) + ": no job can use it",
                      std::string(vendor_of_first(snapshot).compute_mode_command)});
}

/// The consequences for shares of MPS, and of an exclusive mode without it.
void check_mps(const Snapshot& snapshot, Findings& findings) {
  const auto served = labels_of_those(snapshot, has_mps);
  if (!served.empty())
    findings.push_back({Level::pass, "MPS",
                        fmt::format("its server is on {}: shares work there in each compute mode, its own "
                                    "processes are no outsiders, and jobs of one user at a time compute",
                                    gpus(served)),
                        ""});
  const auto exclusive = labels_of_those(snapshot, [](const Device& device) {
    return device.compute_mode == ComputeMode::exclusive_process && !has_mps(device);
  });
  if (!exclusive.empty())
    findings.push_back(
        {Level::pass, "compute mode",
         fmt::format("exclusive on {}: one job computes there at a time, and --memory needs MPS",
                     gpus(exclusive)),
         ""});
}

void check_numbering(const Snapshot& snapshot, const MaskVariables& variables, Findings& findings) {
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

}  // namespace

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

std::vector<Finding> device_findings(const Snapshot& snapshot, const SitePolicy& policy,
                                     const MaskVariables& masks) {
  Findings findings;
  check_devices(snapshot, findings);
  check_xids(snapshot, findings);
  check_what_is_told(snapshot, policy, findings);
  check_persistence(snapshot, findings);
  check_compute_mode(snapshot, findings);
  check_mps(snapshot, findings);
  check_numbering(snapshot, masks, findings);
  return findings;
}

}  // namespace berth::view
