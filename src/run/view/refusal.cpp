#include "berth/view/refusal.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/device/vendor.h"
#include "berth/request/filter.h"
#include "berth/request/request_fields.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"
#include "berth/view/waiting.h"

namespace berth::view {
namespace {

std::string none_or_number(std::size_t number) {
  return number == 0 ? "none" : std::to_string(number);
}

// Of all that there are, nothing more need be said.
std::string only_so_many(const Why& why) {
  if (why.possible == why.verdicts.size()) return "";
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
  const std::string there = counted(why.verdicts.size(), "GPU") + only_so_many(why);
  return why.in_lease
             ? fmt::format("this lease can never satisfy the request ({}): it has {}\n", asked, there)
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
    text += fmt::format("Never possible {}: {} wanted, {} could serve the request.\n",
                        why.in_lease ? "in this lease" : "on this machine", why.request.count,
                        none_or_number(why.possible));
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
