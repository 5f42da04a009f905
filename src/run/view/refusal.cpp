#include "berth/view/refusal.h"

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/queue/schedule.h"
#include "berth/request/request.h"
#include "berth/request/request_fields.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

/// Never going to be given to this request, so that nobody waits for it.
bool is_out_of_question(const Verdict& verdict) {
  return verdict.failed && *verdict.failed <= Clause::static_filters && *verdict.failed != Clause::healthy;
}

/// `promise_bytes`: of a share, the memory that it wants on each device; 0: none is promised.
std::string what_is_missing(const std::vector<Verdict>& verdicts, std::uint64_t promise_bytes,
                            const Snapshot& snapshot, const Style& style) {
  const auto devices = devices_of(verdicts, snapshot);
  std::size_t free = 0;
  std::size_t possible = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;  // what is said, and of which
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    if (devices[i] == nullptr || is_out_of_question(verdict)) continue;
    ++possible;
    if (verdict.free()) {
      ++free;
    } else {
      const std::string state = short_state(verdict, *devices[i], style).text;
      auto said = std::ranges::find(alike, state, [](const auto& each) { return each.first; });
      if (said == alike.end()) said = alike.insert(said, {state, {}});
      said->second.push_back(label(*devices[i]));
    }
  }
  std::string busy;
  for (const auto& [state, labels] : alike)
    busy += fmt::format("{}GPU {} {}", busy.empty() ? "" : ", ", label_list(labels), state);
  const std::string wanted =
      promise_bytes == 0 ? "" : fmt::format(" for {}", bytes_for_people(promise_bytes));
  return fmt::format("{} of {} free{}{}{}", free, possible, wanted, busy.empty() ? "" : "; ", busy);
}

std::string_view source(const Ticket& ticket) {
  switch (expected_by(ticket)) {
    case ExpectedBy::limit:
      return "its time limit";
    case ExpectedBy::runs:
      return "earlier runs";
    case ExpectedBy::nothing:
      break;
  }
  return "nothing is known of it";
}

std::string why_not_yet(const Standing& standing, const Snapshot& snapshot, const Style& style) {
  if (standing.stopped) return "stopped: the others skip it until it goes on";
  if (!standing.hindrance.empty())
    return fmt::format("it keeps its place until its GPUs can be used again: {}", standing.hindrance);
  const std::string missing =
      standing.verdicts.empty()
          ? std::string()
          : what_is_missing(standing.verdicts, standing.ticket.promise_bytes, snapshot, style);
  const auto with_missing = [&](std::string_view why) {
    return missing.empty() ? std::string(why) : fmt::format("{}; {}", missing, why);
  };
  if (standing.ticket.held_back) {
    if (!standing.limited.empty())
      return fmt::format("{}; later requests may start before it", printable(standing.limited));
    return with_missing("its own conditions are not met, so later requests may start before it");
  }
  if (standing.fills_gap_until_s)
    return fmt::format("fills a gap until {} on GPU {}", clock_time(*standing.fills_gap_until_s, style),
                       device_labels(standing.fills_gap_on, snapshot));
  if (standing.behind) {
    const std::string command = short_command(standing.behind->command);
    return fmt::format("behind {}{}", printable(standing.behind->user),
                       command.empty() ? std::string() : fmt::format(" ({})", command));
  }
  const auto free = static_cast<std::size_t>(std::ranges::count_if(standing.verdicts, &Verdict::free));
  if (free < standing.ticket.count) return missing;
  if (!standing.silence.empty())
    return with_missing(printable(standing.silence) +
                        ": the next request may take it, and this one keeps its place");
  // A ticket says of conditions on readings only in words that it has them.
  return with_missing("it starts in a moment, unless conditions of its own keep it");
}

}  // namespace

std::string reason(const Standing& standing, const Snapshot& snapshot, const Style& style) {
  std::string text = why_not_yet(standing, snapshot, style);
  const auto& expected_s = standing.ticket.expected_s;
  if (!expected_s) return text;
  text += fmt::format("{}expected to take {} ({})", text.empty() ? "" : "; ",
                      duration_for_people(*expected_s), source(standing.ticket));
  if (const auto& behind = standing.behind; behind && behind->expected_s)
    text += fmt::format(", and {}'s request {} ({})", printable(behind->user),
                        duration_for_people(*behind->expected_s), source(*behind));
  if (standing.first_from_s)
    text += fmt::format("; of those who wait now, it comes first from about {} on",
                        clock_time(*standing.first_from_s, style));
  return text;
}

Standing told(Standing standing, const Snapshot& snapshot, const Style& style) {
  standing.reason = reason(standing, snapshot, style);
  if (standing.starts_at_s)
    standing.reason =
        fmt::format("to start about {}; {}", clock_time(*standing.starts_at_s, style), standing.reason);
  return standing;
}

namespace {

std::string none_or_number(std::size_t number) {
  return number == 0 ? "none" : std::to_string(number);
}

/// On the machine, or in the lease that the request is made inside of.
std::size_t devices_there(const Why& why) {
  return static_cast<std::size_t>(std::ranges::count_if(
      why.verdicts, [](const Verdict& verdict) { return verdict.failed != Clause::in_lease; }));
}

// Of all that there are, nothing more need be said.
std::string only_so_many(const Why& why) {
  if (why.possible == devices_there(why)) return "";
  return fmt::format(", and {} could serve it",
                     why.possible == 0 ? "none" : fmt::format("only {}", why.possible));
}

std::size_t free_devices(const Why& why) {
  return static_cast<std::size_t>(std::ranges::count_if(why.verdicts, &Verdict::free));
}

std::string looser_lines(const Why& why, const Style& style) {
  if (why.looser.empty()) return "";
  std::string text = "These would succeed now:\n";
  for (const std::string& request : why.looser)
    text += fmt::format("  {}\n", wrapped(request, style.width, 2));
  return text;
}

/// Devices of which only an answer of the driver is missing: nobody knows whether they could serve
/// the request.
std::size_t silent_devices(const Why& why) {
  const auto devices = devices_of(why.verdicts, why.snapshot);
  return static_cast<std::size_t>(std::ranges::count_if(devices, [](const Device* device) {
    return device != nullptr && device->state == DeviceState::unresponsive;
  }));
}

bool hangs_on_driver(const Why& why) {
  const std::size_t silent = silent_devices(why);
  return silent > 0 && why.possible < why.request.count && why.possible + silent >= why.request.count;
}

std::string about_silent_devices(const Why& why) {
  const Device& first = why.snapshot.devices.front();
  return fmt::format("the driver does not respond about {}; `dmesg | grep -i {}` shows what it reported",
                     counted(silent_devices(why), "GPU"), vendor_of(first).log_pattern);
}

/// How to get at the GPUs that a mask hides. "": none are hidden, or enough are free.
std::string remedy_for_mask(const Why& why, const Style& style) {
  const auto hidden = std::ranges::find(why.verdicts, Clause::in_mask, &Verdict::failed);
  if (hidden == why.verdicts.end() || free_devices(why) >= why.request.count) return "";
  const Device* device = find_device(why.snapshot, hidden->uuid);
  if (device == nullptr) return "";
  return wrapped(fmt::format("To use the GPUs outside the mask: unset {}, or --mask ignore.",
                             vendor_of(*device).mask_variable),
                 style.width, 0) +
         "\n";
}

/// People mean the name of their job by --name. "": it names a model that is here, or is not said.
std::string remedy_for_name(const Why& why, const Style& style) {
  for (const Expression& condition : why.request.conditions) {
    const std::string name = filter_value("name", condition);
    const auto has_name = [&](const Device& device) { return contains_text(device.name, name); };
    if (name.empty() || std::ranges::any_of(why.snapshot.devices, has_name)) continue;
    std::vector<std::string> models;
    for (const Device& device : why.snapshot.devices)
      if (std::ranges::find(models, device.name) == models.end()) models.push_back(device.name);
    return wrapped(
               fmt::format("No GPU here is called {}; --name is for a model, and this machine has: {}. To "
                           "name what you run: --note.",
                           in_quotes(name), printable(fmt::format("{}", fmt::join(models, ", ")))),
               style.width, 0) +
           "\n";
  }
  return "";
}

/// Of a request that is not in the queue: it has not waited, and has no place yet that could move.
Standing newcomers(Standing standing) {
  standing.waited = {};
  standing.ticket.expected_s.reset();
  return standing;
}

std::string in_queue(const Why& why, const Style& style) {
  Standing standing = told(newcomers(*why.standing), why.snapshot, style);
  return fmt::format("; earlier requests come first: you would be {}", in_one_line(standing));
}

std::string position_in_queue(const Why& why, const Style& style) {
  Standing standing = told(newcomers(*why.standing), why.snapshot, style);
  return fmt::format("If you asked now, you would be {}.", in_one_line(standing));
}

}  // namespace

std::string request_in_words(const Request& request) {
  std::string text = counted(request.count, request.shared ? "shared GPU" : "whole GPU");
  if (asks_memory_by_runs(request))
    text += ", as much memory as earlier runs used";
  else if (request.promise_bytes > 0)
    text += fmt::format(", {} of memory each", bytes_for_people(request.promise_bytes));
  for (const RequestField& field : request_fields()) {
    if (field.words.exists() && is_said(field, request))
      text += ", " + in_words(field.words, value_in_words(field, request, ","));
  }
  if (request.admitted) text += ", by a condition of the program";
  for (const Expression& condition : request.conditions) text += ", " + printable(condition.text());
  return text;
}

namespace {

std::string never_here(const Why& why) {
  const std::string asked = request_in_words(why.request);
  const std::string there = counted(devices_there(why), "GPU") + only_so_many(why);
  return why.in_lease
             ? fmt::format("this lease can never satisfy the request ({}): it has {}{}\n", asked, there,
                           why.limit_outside.empty() ? "" : "; outside of it " + why.limit_outside)
             : fmt::format("this machine can never satisfy the request ({}): it has {}\n", asked, there);
}

}  // namespace

std::string explanation(const Why& why, const Style& style) {
  std::string text = fmt::format("Asked for: {}\n\n", request_in_words(why.request));
  text += verdict_lines(why.verdicts, why.snapshot, style) + "\n";
  const std::size_t free = free_devices(why);
  if (free >= why.request.count) {
    text += fmt::format("Can be had now: {} free, {} wanted.\n", free, why.request.count);
  } else if (hangs_on_driver(why)) {
    text += wrapped(fmt::format("Not now: {} wanted, and {}.", why.request.count, about_silent_devices(why)),
                    style.width, 0) +
            "\n";
  } else if (why.never) {
    text += wrapped(fmt::format("Never possible for you: {} wanted, and {}.", why.request.count, *why.never),
                    style.width, 0) +
            "\n";
  } else if (why.possible < why.request.count) {
    const std::string outside =
        why.limit_outside.empty() ? "" : fmt::format(" Outside of it {}.", why.limit_outside);
    text += wrapped(fmt::format("Never possible {}: {} wanted, {} could serve the request.{}",
                                why.in_lease ? "in this lease" : "on this machine", why.request.count,
                                none_or_number(why.possible), outside),
                    style.width, 0) +
            "\n";
  } else {
    text += fmt::format("Not now: {} wanted, {} free.\n", why.request.count, none_or_number(free));
    if (why.standing)
      text += wrapped(position_in_queue(why, style), style.width, 0) + "\n";
    else if (why.starts_at_s)
      text +=
          fmt::format("If you asked now, it would start about {}.\n", clock_time(*why.starts_at_s, style));
  }
  return text + remedy_for_mask(why, style) + remedy_for_name(why, style) + looser_lines(why, style);
}

std::string refusal(const Why& why, const Style& style) {
  std::string text;
  if (why.never) {
    text = fmt::format("this can never be satisfied ({}): {}\n", request_in_words(why.request), *why.never);
  } else if (hangs_on_driver(why)) {
    text = fmt::format("not now ({}): {}\n", request_in_words(why.request), about_silent_devices(why));
  } else if (why.possible < why.request.count) {
    text = never_here(why);
  } else {
    text = fmt::format("not now: {} wanted, {} free{}\n", request_in_words(why.request),
                       none_or_number(free_devices(why)), why.standing ? in_queue(why, style) : "");
  }
  return text + verdict_lines(why.verdicts, why.snapshot, style) + remedy_for_mask(why, style) +
         remedy_for_name(why, style) + looser_lines(why, style);
}

}  // namespace berth::view
