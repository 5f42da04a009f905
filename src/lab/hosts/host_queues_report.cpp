#include "berth/hosts/host_queues_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "berth/base/printable.h"
#include "berth/command/environment.h"
#include "berth/command/messages.h"
#include "berth/supervise/wait_report.h"
#include "berth/view/text.h"

namespace berth::hosts {

HostQueuesReport::HostQueuesReport(std::string request_words, const std::vector<std::string>& hosts,
                                   bool quiet)
    : request_words_(std::move(request_words)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {
  for (const std::string& name : hosts) hosts_.push_back({name});
}

void HostQueuesReport::begin() {
  if (begun_) return;
  begun_ = true;
  command::print_message(
      fmt::format("waiting for {} on {}; Ctrl-C leaves every queue", request_words_,
                  hosts_.size() == 1 ? hosts_.front().name : fmt::format("{} hosts", hosts_.size())));
}

std::string HostQueuesReport::all_lines() const {
  std::string text;
  for (const AtHost& host : hosts_)
    if (!host.stands.empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : " | ", host.name, host.stands);
  return text;
}

void HostQueuesReport::tell_standing(AtHost& host, const Standing& standing) {
  if (quiet_) return;
  const std::string position = standing.position <= 1 ? std::string("first in line")
                                                      : fmt::format("no. {} in line", standing.position);
  const std::string stands = fmt::format("{}, {}", position, printable(standing.reason));
  if (stands == host.stands) return;
  host.stands = stands;
  begin();
  if (!terminal_) return command::print_message(fmt::format("{}: {}", host.name, stands));
  if (!supervise::may_draw()) return;
  const auto width = command::Environment::style_of(STDERR_FILENO).width;
  command::mention(fmt::format("{}{}", view::kClearLine, view::cut(all_lines(), width - 1)));
}

void HostQueuesReport::tell_out(AtHost& host, const std::string& why) {
  host.stands.clear();
  if (quiet_) return;
  if (terminal_ && begun_ && supervise::may_draw()) command::mention(view::kClearLine);
  // The rest is told if no host is left.
  command::print_message(fmt::format("{} is left out: {}", host.name, why.substr(0, why.find('\n'))));
}

void HostQueuesReport::tell() {
  if (next_deadline()) return;
  for (AtHost& host : hosts_) {
    if (const auto standing = std::exchange(host.standing, {})) tell_standing(host, *standing);
    if (const auto why_out = std::exchange(host.why_out, {})) tell_out(host, *why_out);
  }
}

sys::Deadline HostQueuesReport::next_deadline() const {
  return std::chrono::steady_clock::now() < first_ ? std::optional(first_) : std::nullopt;
}

void HostQueuesReport::end() {
  if (begun_ && terminal_ && supervise::may_draw()) command::mention(view::kClearLine);
}

}  // namespace berth::hosts
