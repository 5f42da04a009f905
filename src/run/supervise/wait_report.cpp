#include "berth/supervise/wait_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include "berth/command/environment.h"
#include "berth/device/vendor.h"
#include "berth/lease/domain.h"
#include "berth/request/inherited_mask.h"
#include "berth/sys/terminal.h"
#include "berth/view/waiting.h"

namespace berth::supervise {

// If a job in the background drew its line, it would hide what the user types. Several such jobs
// would draw over each other.
bool may_draw() {
  return sys::is_in_foreground_of(STDERR_FILENO);
}

namespace {

// An inherited mask is easily forgotten, and then the wait is for a GPU that nobody asked for.
std::string mask_in_words(const Snapshot& snapshot) {
  std::string text;
  for (const Mask& mask : resolve_masks(leasing::inherited_masks(), snapshot)) {
    if (mask.uuids.size() >= snapshot.devices.size()) continue;
    const std::string name(vendor_named(mask.vendor).mask_variable);
    text += fmt::format(
        "berth: {0}={1} is set, so the job waits for no other GPU; to wait for any: `unset {0}` or --mask "
        "ignore\n",
        name, printable(mask.text));
  }
  return text;
}

}  // namespace

WaitReport::WaitReport(std::string request_words, bool obeys_mask, bool enters_queue)
    : request_words_(std::move(request_words)),
      obeys_mask_(obeys_mask),
      terminal_(::isatty(STDERR_FILENO) == 1),
      enters_queue_(enters_queue) {}

void WaitReport::show(const Standing& standing, const Snapshot& snapshot) {
  const view::Style style = command::Environment::style_of(STDERR_FILENO);
  if (!shown_)
    shown_ = !enters_queue_ ||
             command::mention(fmt::format(
                 "berth: waiting for {}; Ctrl-C leaves the queue, --no-wait does not enter it\n{}",
                 request_words_, obeys_mask_ ? mask_in_words(snapshot) : ""));
  Standing told = view::told(standing, snapshot, style);
  const std::string line = in_one_line(told);
  if (terminal_) {
    if (!may_draw()) return;
    command::mention(fmt::format("{}{}", view::kClearLine, view::cut(line, style.width - 1)));
    return;
  }
  view::Style timeless = style;
  timeless.now_s = 0;
  told = view::told(std::move(told), snapshot, timeless);
  told.waited = {};
  if (std::string now = in_one_line(told); now != last_ && command::mention(fmt::format("berth: {}\n", line)))
    last_ = std::move(now);
}

void WaitReport::end() {
  if (shown_ && terminal_ && may_draw()) command::mention(view::kClearLine);
}

}  // namespace berth::supervise
