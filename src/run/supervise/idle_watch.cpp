#include "berth/supervise/idle_watch.h"

#include <fmt/format.h>

#include <utility>

#include "berth/base/units.h"

namespace berth::supervise {
namespace {

IdleSpan::Time since_start() {
  return std::chrono::duration_cast<IdleSpan::Time>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

IdleWatch::IdleWatch(const leasing::Session& session, leasing::HeldLease& lease)
    : session_(session), lease_(lease) {
  const auto after_s = session.policy().idle_leases_s;
  if (!after_s || lease.ticket().yield_s || session.domain().within) return;
  span_.emplace(std::chrono::seconds(*after_s), since_start());
  next_ = std::chrono::steady_clock::now() + span_->period();
}

std::optional<IdleWatch::YieldChange> IdleWatch::go_on() {
  if (!span_ || std::chrono::steady_clock::now() < next_) return std::nullopt;
  span_->note(since_start(), computes());
  next_ = std::chrono::steady_clock::now() + span_->period();
  // If it cannot be written, the next look tries again. Until then a lease that computes again
  // seems to yield, but its holder, which alone could end it, does not do so.
  const auto grace_s = span_->is_idle() ? std::optional(session_.policy().time_grace_s) : std::nullopt;
  if (span_->has_news() && lease_.yield_from_now(*session_.domain().store, grace_s)) span_->has_told();
  if (span_->gives_way() == std::exchange(gives_way_, span_->gives_way())) return std::nullopt;
  if (!gives_way_) return YieldChange{};
  return YieldChange{true, fmt::format("nothing has computed on GPU {} for {} (idle_leases of the site)",
                                       lease_.labels(), duration_for_people(span_->after().count()))};
}

Reading<bool> IdleWatch::computes() const {
  const auto source = session_.source().open();
  const auto snapshot = source ? (*source)->read(kReadingsOfLoad) : std::unexpected(source.error());
  session_.source().close();
  return snapshot ? any_computes(*snapshot, lease_.ticket().devices) : std::nullopt;
}

}  // namespace berth::supervise
