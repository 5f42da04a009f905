#include "berth/view/compliance.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/units.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
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
