#include "berth/view/doctor.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

constexpr std::size_t kIndent = 6;

Tone tone_of(Level level) {
  constexpr std::array<Tone, 3> kTones{Tone::good, Tone::waiting, Tone::bad};
  return kTones[static_cast<std::size_t>(level)];
}

std::size_t count_of(const std::vector<Finding>& findings, Level level) {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &Finding::level));
}

}  // namespace

std::string doctor_report(const std::vector<Finding>& findings, std::string_view what_is,
                          const Style& style) {
  constexpr std::array<std::string_view, 3> kMarks{"PASS", "WARN", "FAIL"};
  const std::string margin(kIndent, ' ');
  std::string text;
  for (const Finding& finding : findings) {
    const std::string line = fmt::format("{}: {}", finding.check, printable(finding.found));
    text += fmt::format("{}  {}\n",
                        toned(kMarks[static_cast<std::size_t>(finding.level)], tone_of(finding.level), style),
                        wrapped(line, style.width, kIndent));
    if (finding.remedy.empty()) continue;
    text += fmt::format("{}{}\n", margin, "-> " + wrapped(finding.remedy, style.width, kIndent + 3));
  }
  const std::size_t warnings = count_of(findings, Level::warn);
  const std::size_t failures = count_of(findings, Level::fail);
  text +=
      fmt::format("\n{}\n", failures > 0 ? fmt::format("{}, {}: {} not to be relied on until that is mended",
                                                       counted(failures, "failure"),
                                                       counted(warnings, "warning"), what_is)
                            : warnings > 0 ? fmt::format("works, with {}", counted(warnings, "warning"))
                                           : std::string("all is well"));
  return text;
}

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

namespace {

template <class Which>
std::string labels_where(const ComplianceReport& report, const Which& which) {
  std::string labels;
  for (const DeviceUse& use : report.devices) {
    if (which(use)) labels += (labels.empty() ? "" : ",") + label(*use.device);
  }
  return labels;
}

std::string pids_of(const std::vector<const Process*>& processes) {
  std::string pids;
  for (const Process* process : processes)
    pids += fmt::format("{}{}", pids.empty() ? "" : ", ", process->pid);
  return pids;
}

std::string strays_in_words(const ComplianceReport& report) {
  std::string text;
  for (const DeviceUse& use : report.devices) {
    if (use.leased || use.processes.empty()) continue;
    text += fmt::format("{}GPU {} (pid {})", text.empty() ? "" : " and ", label(*use.device),
                        pids_of(use.processes));
  }
  return text;
}

std::string why_unknown(const JobCompliance& job) {
  if (job.snapshot.stale_reason) return printable(*job.snapshot.stale_reason);
  const std::string silent = labels_where(job.report, [](const DeviceUse& use) { return !use.told; });
  if (!silent.empty()) return fmt::format("GPU {} does not tell what runs on it", silent);
  for (const DeviceUse& use : job.report.devices) {
    if (use.nameless.empty()) continue;
    return fmt::format("on GPU {} runs pid {}, of which nothing is known from here", label(*use.device),
                       pids_of(use.nameless));
  }
  return "the machine does not tell";
}

std::string process_in_words(const Process& process, bool assumed) {
  std::string text = fmt::format("pid {}", process.pid);
  if (const std::string command = short_command(process.command); !command.empty())
    text += fmt::format(" ({})", command);
  if (!process.user.empty()) text += fmt::format(" of {}", printable(process.user));
  if (process.used_bytes) text += fmt::format(", {}", bytes_for_people(*process.used_bytes));
  // Whose it is follows from its user only.
  return assumed ? text + ", assumed to be the job's" : text;
}

std::string device_in_words(const DeviceUse& use, const std::set<std::uint32_t>& assumed) {
  std::string text = use.leased ? "leased; " : "not leased; ";
  if (!use.told) return text + "does not tell what runs on it";
  if (use.processes.empty()) return text + "nothing of the job computes on it";
  std::string processes;
  for (const Process* process : use.processes)
    processes += (processes.empty() ? "" : "; ") + process_in_words(*process, assumed.contains(process->pid));
  return text + processes;
}

}  // namespace

std::string leased_in_words(const JobCompliance& job) {
  const std::string labels = labels_where(job.report, [](const DeviceUse& use) { return use.leased; });
  return labels.empty() ? "no GPU that is there" : "GPU " + labels;
}

std::string compliance_sentence(const JobCompliance& job) {
  switch (job.report.compliance) {
    case Compliance::keeps:
      return fmt::format("it keeps to {}", leased_in_words(job));
    case Compliance::strays:
      return fmt::format("it computes on {}, which it did not lease", strays_in_words(job.report));
    case Compliance::idle:
      return "nothing of it computes on any GPU at this moment";
    case Compliance::unknown:
      break;
  }
  return fmt::format("it cannot be known: {}", why_unknown(job));
}

std::string overrun_sentence(const Overrun& overrun, const Ticket& lease) {
  const auto [used, promised] = bytes_side_by_side(overrun.used_bytes, lease.promise_bytes);
  return fmt::format(
      "it uses {} on GPU {}, and its share is {}: the other jobs there may run out of memory; ask for more "
      "with --memory",
      used, label(*overrun.device), promised);
}

std::string compliance_text(const JobCompliance& job, const Style& style) {
  const std::string command = short_command(job.lease.command);
  std::string text =
      fmt::format("lease {} of {}{}: {}", job.name,
                  job.lease.user.empty() ? fmt::format("uid {}", job.lease.uid) : printable(job.lease.user),
                  command.empty() ? std::string() : fmt::format(" ({})", command), compliance_sentence(job));
  text = wrapped(text, style.width, 0) + "\n\n";
  std::size_t width = 1;
  for (const DeviceUse& use : job.report.devices) width = std::max(width, label(*use.device).size());
  for (const DeviceUse& use : job.report.devices) {
    const bool strays = !use.leased && !use.processes.empty();
    const std::string body = wrapped(device_in_words(use, job.assumed), style.width, width + 6);
    text += fmt::format("GPU {:<{}}  {}\n", label(*use.device), width,
                        toned(body, strays ? Tone::bad : Tone::plain, style));
  }
  return text;
}

}  // namespace berth::view
