#include "berth/lab_queue/lab_queue_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "berth/base/printable.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

/// Of the line as people see it, in one answer: all of a long line would be more than may be sent at once.
constexpr std::size_t kMostStanding = 500;
constexpr auto kBetweenShows = 1s;
/// Who is passed over changes with the time, too.
constexpr auto kWithoutNews = 5s;

/// Whoever may write to etcd can write more there than an agent does.
std::string asked_at_of(const LabStanding& standing) {
  return standing.asked_at.substr(0, kLongestAskedAt);
}

}  // namespace

bool StoreTelling::is_first_news() {
  return shows() && !std::exchange(has_news_, true);
}

StoreTelling::Instant StoreTelling::next_show() const {
  return shown_at_ + (has_news_ ? kBetweenShows : kWithoutNews);
}

void StoreTelling::tell(const std::string& fault, const std::function<LabOrder()>& order) {
  const Instant now = std::chrono::steady_clock::now();
  for (const Guest& each : guests_->all()) {
    if (std::exchange(each->wants_status, false)) tell_status(each, fault);
    if (!each->wants_line || !has_line(fault)) continue;
    const std::size_t from = *std::exchange(each->wants_line, {});
    if (fault.empty())
      tell_line(each, from, order());
    else
      guests_->send(each, "silent " + printable(fault));
    guests_->send(each, "end");
  }
  // While the store does not answer, all keep their places.
  if (!shows() || !fault.empty() || !has_line(fault) || now < next_show()) return;
  shown_at_ = now;
  has_news_ = false;
  std::vector<LabStanding> line = order().standing;
  if (line.size() > kMostStanding) line.resize(kMostStanding);
  for (LabStanding& each : line) each.asked_at = asked_at_of(each);
  if (std::exchange(shown_, line) != line) show_(std::move(line));
}

void StoreTelling::tell_status(const Guest& guest, const std::string& fault) {
  guests_->send(guest, "store " + url_of(store_->member()));
  guests_->send(guest, "name " + name_);
  if (!fault.empty()) guests_->send(guest, "silent " + printable(fault));
  for (const auto& [home, version] : store_->now().alive())
    guests_->send(guest, fmt::format("alive {} {}", printable(home), printable(version)));
  guests_->send(guest, fmt::format("waiting {}", store_->now().line().size()));
  guests_->send(guest, "end");
}

void StoreTelling::tell_line(const Guest& guest, std::size_t from, const LabOrder& order) {
  const std::size_t begin = std::min(from, order.standing.size());
  const std::size_t end = std::min(order.standing.size(), begin + kMostStanding);
  for (std::size_t i = begin; i < end; ++i) {
    const LabStanding& each = order.standing[i];
    guests_->send(guest, fmt::format("stands {} {}", each.place, printable(asked_at_of(each))));
  }
  guests_->send(guest, fmt::format("outside {}", order.outside));
  if (end < order.standing.size()) guests_->send(guest, fmt::format("more {}", end));
}

}  // namespace berth::lab_queue
