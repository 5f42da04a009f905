#include "berth/lab_queue/lab_queue_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "berth/base/printable.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

/// Of the line as people see it, in one answer: all of a long line would be more than may be sent
/// at once.
constexpr std::size_t kMostStanding = 500;
constexpr auto kBetweenShows = 1s;
/// Which requests are skipped depends on the time as well.
constexpr auto kWithoutNews = 5s;

/// A user who may write to etcd can write more there than an agent does.
std::string shown_origin(const LabStanding& standing) {
  return standing.origin.substr(0, kLongestOrigin);
}

}  // namespace

bool LabQueueReporter::is_first_news() {
  return shows() && !std::exchange(has_news_, true);
}

LabQueueReporter::Instant LabQueueReporter::next_show() const {
  return shown_at_ + (has_news_ ? kBetweenShows : kWithoutNews);
}

void LabQueueReporter::tell(const std::string& fault, const std::function<LabOrder()>& order) {
  const Instant now = std::chrono::steady_clock::now();
  for (const Connection& each : connections_->all()) {
    if (std::exchange(each->wants_status, false)) send_status(each, fault);
    if (!each->wants_queue || !has_queue(fault)) continue;
    const std::size_t from = *std::exchange(each->wants_queue, {});
    if (fault.empty())
      send_queue(each, from, order());
    else
      connections_->send(each, "silent " + printable(fault));
    connections_->send(each, "end");
  }
  // While the store does not answer, all keep their places.
  if (!shows() || !fault.empty() || !has_queue(fault) || now < next_show()) return;
  shown_at_ = now;
  has_news_ = false;
  std::vector<LabStanding> queue = order().standing;
  if (queue.size() > kMostStanding) queue.resize(kMostStanding);
  for (LabStanding& each : queue) each.origin = shown_origin(each);
  if (std::exchange(shown_, queue) != queue) show_(std::move(queue));
}

void LabQueueReporter::send_status(const Connection& connection, const std::string& fault) {
  connections_->send(connection, "store " + url_of(store_->member()));
  connections_->send(connection, "name " + name_);
  if (!fault.empty()) connections_->send(connection, "silent " + printable(fault));
  for (const auto& [home, version] : store_->now().alive())
    connections_->send(connection, fmt::format("alive {} {}", printable(home), printable(version)));
  connections_->send(connection, fmt::format("waiting {}", store_->now().queue().size()));
  connections_->send(connection, "end");
}

void LabQueueReporter::send_queue(const Connection& connection, std::size_t from, const LabOrder& order) {
  const std::size_t begin = std::min(from, order.standing.size());
  const std::size_t end = std::min(order.standing.size(), begin + kMostStanding);
  for (std::size_t i = begin; i < end; ++i) {
    const LabStanding& each = order.standing[i];
    connections_->send(connection, fmt::format("stands {} {}", each.position, printable(shown_origin(each))));
  }
  connections_->send(connection, fmt::format("outside {}", order.outside));
  if (end < order.standing.size()) connections_->send(connection, fmt::format("more {}", end));
}

}  // namespace berth::lab_queue
