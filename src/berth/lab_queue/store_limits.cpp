#include "berth/lab_queue/store_limits.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "berth/sys/clock.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 3s;
constexpr auto kBetweenLooks = 5ms;
constexpr auto kLongestBetweenLooks = 1s;

}  // namespace

StoreLimits::StoreLimits(asio::io_context& loop, SiteLimits limits)
    : loop_(loop), limits_(std::move(limits)), any_(has_lab_limit(limits_)) {}

bool StoreLimits::are_known_for(const LabConnection& connection) const {
  return !any_ || connection.knows_limit || !connection.told_yes.empty();
}

void StoreLimits::learn(const Connection& connection, std::function<void()> told_late,
                        std::function<void()> known) {
  if (!any_) return;
  asio::co_spawn(loop_, ask(shared_from_this(), connection, std::move(told_late), std::move(known)),
                 asio::detached);
}

net::Task<> StoreLimits::ask(std::shared_ptr<StoreLimits> self, Connection connection,
                             std::function<void()> told_late, std::function<void()> known) {
  const auto asked_at = std::chrono::steady_clock::now();
  net::Timer pause(self->loop_);
  std::chrono::milliseconds length = kBetweenLooks;
  while (!connection->is_gone) {
    connection->asker = self->askers_.find(connection->who.uid);
    if (connection->asker) break;
    if (std::chrono::steady_clock::now() - asked_at > kPatience) told_late();
    pause.expires_after(length);
    co_await pause.async_wait(net::kAwait);
    length = std::min<std::chrono::milliseconds>(2 * length, kLongestBetweenLooks);
  }
  known();
}

std::optional<std::string> StoreLimits::apply_to(LabConnection& connection) const {
  const auto limits = now_for(connection);
  if (!limits || !connection.told_yes.empty()) return std::nullopt;
  if (auto why = never_in_lab(*limits, connection.wanted.gpus)) return why;
  const auto& most = limits->now.lab_gpus;
  connection.knows_limit = true;
  connection.wanted.most = most ? std::optional(static_cast<unsigned>(most->most)) : std::nullopt;
  return std::nullopt;
}

std::optional<std::string> StoreLimits::why_over(const LabConnection& connection, const GpusByUser& has,
                                                 std::uint64_t taken) const {
  const auto limits = now_for(connection);
  if (!limits) return std::nullopt;
  const auto found = has.in_all.find(connection.wanted.uid);
  const std::uint64_t held = found == has.in_all.end() ? 0 : found->second;
  return over_lab_limit(*limits, connection.wanted.gpus, held, taken - std::min(taken, held));
}

std::optional<UserLimits> StoreLimits::now_for(const LabConnection& connection) const {
  if (!connection.asker) return std::nullopt;
  const sys::DayMinute now = limits_.hours.empty() ? sys::DayMinute{} : sys::machine_minute();
  return limits_of(limits_, *connection.asker, {now.day_of_week, now.minute});
}

}  // namespace berth::lab_queue
