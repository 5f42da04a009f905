#include "berth/view/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"

namespace berth::view {
namespace {

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

/// A program whose own name says nothing: what it interprets does.
bool is_interpreter(std::string_view program) {
  constexpr std::array<std::string_view, 9> kNames{"python", "pypy", "bash", "sh",  "zsh",
                                                   "perl",   "ruby", "node", "java"};
  return std::ranges::any_of(kNames, [&](std::string_view name) {
    if (!program.starts_with(name)) return false;
    const std::string_view rest = program.substr(name.size());
    return rest.find_first_not_of("0123456789.") == std::string_view::npos;
  });
}

std::string passed(std::int64_t at_s, const Style& style) {
  return at_s == 0 ? "" : " " + duration_for_people(std::max<std::int64_t>(0, style.now_s - at_s));
}

std::string name_of(const Culprit& culprit) {
  return culprit.user.empty() ? "an unknown user" : printable(culprit.user);
}

std::string culprit_in_words(const Culprit& culprit, bool holder, const Style& style) {
  std::string text = name_of(culprit);
  const std::string command = short_command(culprit.command);
  if (!command.empty()) text += ", " + command;
  if (culprit.pid != 0 && !holder) text += fmt::format(" (pid {})", culprit.pid);
  if (culprit.since_s != 0) text += ", " + since(culprit.since_s, style);
  if (!culprit.note.empty()) text += " " + in_quotes(culprit.note);
  return text;
}

/// `holder`: they stand there as holders of a lease, whose pids nobody needs.
std::string culprits_in_words(const Verdict& verdict, bool holder, const Style& style) {
  constexpr std::size_t kMostCulprits = 3;
  const std::vector<Culprit>& culprits = verdict.culprits;
  std::string text;
  for (std::size_t i = 0; i < std::min(culprits.size(), kMostCulprits); ++i) {
    if (i > 0) text += "; ";
    text += culprit_in_words(culprits[i], holder, style);
  }
  if (culprits.size() > kMostCulprits)
    text += fmt::format("; and {} more", culprits.size() - kMostCulprits + verdict.more_culprits);
  return text;
}

std::string user_names(const std::vector<Culprit>& culprits) {
  std::vector<std::string> names;
  for (const Culprit& culprit : culprits) {
    std::string name = culprit.user.empty() ? "?" : printable(culprit.user);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view state_in_words(DeviceState state) {
  switch (state) {
    case DeviceState::ok:
      return "ok";
    case DeviceState::lost:
      return "lost";
    case DeviceState::needs_reset:
      return "needs a reset";
    case DeviceState::not_permitted:
      return "no permission";
    case DeviceState::unresponsive:
      return "not responding";
    case DeviceState::failed:
      return "failed";
  }
  return "failed";
}

/// Of a device that answers and is not granted: "needs a reset".
std::string ailment(const Device& device) {
  const Recovery* recovery = recovery_of(device);
  return device.health.row_remap_failed.value_or(false) || recovery == nullptr ? "unhealthy"
                                                                               : std::string(recovery->needs);
}

/// ", 12 GiB left": of a device whose leases are shares. Of one that is leased whole nothing is.
std::string left_for_a_share(const Verdict& verdict) {
  if (verdict.culprits.empty() || verdict.free_bytes.value_or(0) == 0) return "";
  return fmt::format(", {} left", bytes_for_people(*verdict.free_bytes));
}

/// "; 30 GiB of 80 GiB are left for shares": likewise.
std::string left_for_shares(const Verdict& verdict, const Device& device) {
  const auto lendable = lendable_memory(device);
  if (left_for_a_share(verdict).empty() || !lendable) return "";
  return fmt::format("; {} of {} are left for shares", bytes_for_people(*verdict.free_bytes),
                     bytes_for_people(*lendable));
}

/// Devices of which the same is to be said.
struct AlikeDevices {
  std::vector<std::string> labels;
  std::string sentence;
  bool free = false;
};

std::string verdict_in_words(const Verdict& verdict, const Device& device, const Style& style) {
  if (!verdict.failed) {
    const std::string blemish = blemish_of(device);
    return fmt::format(
        "free{}{}{}",
        verdict.free_bytes ? fmt::format(", {} of memory", bytes_for_people(*verdict.free_bytes)) : "",
        blemish.empty() ? "" : "; taken after the others: ", blemish);
  }
  const std::string who = culprits_in_words(verdict, verdict.failed == Clause::not_leased, style);
  const std::string reason = printable(verdict.reason);
  switch (*verdict.failed) {
    case Clause::healthy:
      if (device.state == DeviceState::ok) return reason;
      return device.state_reason.empty()
                 ? std::string(state_in_words(device.state))
                 : fmt::format("{}: {}", state_in_words(device.state), printable(device.state_reason));
    case Clause::not_leased:
      if (who.empty()) return reason;
      return fmt::format("leased by {}{}", who, left_for_shares(verdict, device));
    case Clause::no_outsider:
      if (who.empty()) return reason;
      return fmt::format("used without a lease by {}", who);
    default:
      return reason.empty() ? std::string(to_text(*verdict.failed)) : reason;
  }
}

void add_to_alike(std::vector<AlikeDevices>& groups, AlikeDevices one) {
  const auto same = std::ranges::find_if(groups, [&](const AlikeDevices& group) {
    return group.sentence == one.sentence && group.free == one.free;
  });
  if (same == groups.end()) {
    groups.push_back(std::move(one));
  } else {
    same->labels.push_back(std::move(one.labels.front()));
  }
}

bool follows(std::string_view label, std::string_view next) {
  const auto number = number_from_text<unsigned>(label);
  const auto after = number_from_text<unsigned>(next);
  return number && after && *after == *number + 1;
}

// "excluded by the site: a repair" in few words.
std::string excluded_in_words(std::string_view reason) {
  const std::size_t colon = reason.find(": ");
  return fmt::format("excluded{}", colon == std::string_view::npos ? "" : reason.substr(colon));
}

}  // namespace

std::string short_command(std::string_view command) {
  const std::vector<std::string_view> words = words_at(command);
  if (words.empty()) return "";
  const std::string_view program = base_name(words[0]);
  if (is_interpreter(program)) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "-m" && i + 1 < words.size()) return printable(words[i + 1]);
      if (words[i] == "-c" || words[i] == "-jar") break;
      if (!words[i].starts_with('-')) return printable(base_name(words[i]));
    }
  }
  return printable(program);
}

std::string noted_command(const Ticket& ticket) {
  const std::string command = printable(ticket.command);
  if (ticket.note.empty()) return command;
  return fmt::format("{}{}{}", in_quotes(ticket.note), command.empty() ? "" : " ", command);
}

std::string label_list(const std::vector<std::string>& labels) {
  std::string text;
  for (std::size_t i = 0; i < labels.size();) {
    std::size_t last = i;
    while (last + 1 < labels.size() && follows(labels[last], labels[last + 1])) ++last;
    // Two are no shorter with a dash.
    if (last < i + 2) last = i;
    text += (text.empty() ? "" : ",") + labels[i];
    if (last > i) text += "-" + labels[last];
    i = last + 1;
  }
  return text;
}

std::string sentence(const Verdict& verdict, const Device& device, const Style& style) {
  const std::string text = verdict_in_words(verdict, device, style);
  const unsigned xid = device.health.last_xid.value_or(0);
  return xid == 0 ? text : fmt::format("{}; the kernel's log has {}", text, xid_in_words(xid));
}

ShortState short_state(const Verdict& verdict, const Device& device, const Style& style) {
  if (!verdict.failed) return {"free", Tone::good};
  const auto with_users = [&](std::string_view word) {
    if (verdict.culprits.empty()) return std::string(word);
    const bool one = verdict.culprits.size() == 1;
    return fmt::format("{} {}{}", word, user_names(verdict.culprits),
                       one ? passed(verdict.culprits.front().since_s, style) : "");
  };
  switch (*verdict.failed) {
    case Clause::healthy:
      return {device.state == DeviceState::ok ? ailment(device) : std::string(state_in_words(device.state)),
              Tone::bad};
    case Clause::not_excluded:
      return {excluded_in_words(printable(verdict.reason)), Tone::faint};
    case Clause::in_lease:
      return {"not in this lease", Tone::faint};
    case Clause::in_mask:
      return {"outside mask", Tone::faint};
    case Clause::static_filters:
      return {"filtered out", Tone::faint};
    case Clause::not_leased:
      return {with_users(verdict.culprits.empty() ? "locked" : "leased") + left_for_a_share(verdict),
              Tone::waiting};
    case Clause::not_draining:
      return {"draining", Tone::waiting};
    case Clause::no_outsider:
      if (!device.processes) return {"no process list", Tone::bad};
      return {with_users("outsider"), Tone::foreign};
    case Clause::no_hidden_holder:
      return {"hidden holder", Tone::foreign};
    case Clause::compute_mode:
      return {"compute mode", Tone::bad};
    case Clause::not_passed_over:
      return {"passed over", Tone::bad};
    case Clause::thresholds:
      return {"over threshold", Tone::waiting};
    case Clause::within_limit:
      return {"over your limit", Tone::waiting};
    case Clause::not_awaited:
      return {fmt::format("kept for {}", user_names(verdict.culprits)), Tone::waiting};
    case Clause::unknown:
      break;
  }
  return {"unknown", Tone::bad};
}

std::vector<const Device*> devices_of(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  std::vector<const Device*> devices;
  auto device = snapshot.devices.begin();
  for (const Verdict& verdict : verdicts) {
    device = std::find_if(device, snapshot.devices.end(), [&](const Device& each) {
      return each.uuid == verdict.uuid && (each.mig || !each.mig_enabled.value_or(false));
    });
    devices.push_back(device == snapshot.devices.end() ? nullptr : &*device);
    if (device != snapshot.devices.end()) ++device;
  }
  return devices;
}

const Verdict* verdict_on(const Device& device, const std::vector<Verdict>& verdicts,
                          const Snapshot& snapshot) {
  const std::vector<const Device*> judged = devices_of(verdicts, snapshot);
  const auto found = std::ranges::find(judged, &device);
  return found == judged.end() ? nullptr : &verdicts[static_cast<std::size_t>(found - judged.begin())];
}

std::string verdict_lines(const std::vector<Verdict>& verdicts, const Snapshot& snapshot,
                          const Style& style) {
  const std::vector<const Device*> devices = devices_of(verdicts, snapshot);
  std::vector<AlikeDevices> groups;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (devices[i] == nullptr) continue;
    AlikeDevices one{{label(*devices[i])}, sentence(verdicts[i], *devices[i], style), verdicts[i].free()};
    add_to_alike(groups, std::move(one));
  }
  std::size_t label_width = 1;
  for (const AlikeDevices& group : groups)
    label_width = std::max(label_width, label_list(group.labels).size());
  const std::size_t margin = label_width + 6;  // "GPU ", the label, two spaces
  std::string text;
  for (const AlikeDevices& group : groups) {
    const std::string line = fmt::format("GPU {:<{}}", label_list(group.labels), label_width);
    const std::string body = wrapped(group.sentence, style.width, margin);
    text += fmt::format("{}  {}\n", line, group.free ? toned(body, Tone::good, style) : body);
  }
  return text;
}

}  // namespace berth::view
