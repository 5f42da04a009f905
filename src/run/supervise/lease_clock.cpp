#include "berth/supervise/lease_clock.h"

#include <fmt/format.h>

#include "berth/base/units.h"
#include "berth/sys/clock.h"

namespace berth::supervise {

using std::chrono::milliseconds;

namespace {

// The wall clock can be set, and the monotonic one stands still while the machine sleeps.
constexpr auto kReadClock = &sys::since_boot;

}  // namespace

LeaseClock::LeaseClock(leasing::HeldLease& lease) : lease_(lease), granted_(granted_at(lease.ticket())) {
  if (const auto time_s = lease.ticket().time_s) job_ = JobTime{.time = std::chrono::seconds(*time_s)};
}

milliseconds LeaseClock::since_grant() const {
  return std::chrono::duration_cast<milliseconds>(kReadClock() - granted_);
}

std::optional<milliseconds> LeaseClock::left() const {
  if (!job_ || is_over_) return std::nullopt;
  return std::max(next_due(*job_) - since_grant(), milliseconds(0));
}

std::chrono::seconds LeaseClock::time() const {
  return std::chrono::duration_cast<std::chrono::seconds>(job_->time);
}

TimeDue LeaseClock::due_now() {
  if (!job_ || is_over_ || due(*job_, since_grant()) == TimeDue::none) return TimeDue::none;
  const auto time_s = lease_.time_s();
  const TimeDue now_due =
      take_due(*job_, since_grant(), time_s ? std::optional(std::chrono::seconds(*time_s)) : std::nullopt);
  if (now_due == TimeDue::over) is_over_ = true;
  return now_due;
}

std::string warning_of(milliseconds time, const std::string& lease_name) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(warning_before(time));
  return fmt::format("the lease ends in {}: its time limit is {}; to extend it: berth extend {} TIME",
                     duration_for_people(left.count()),
                     time_for_people(std::chrono::floor<std::chrono::seconds>(time).count()), lease_name);
}

}  // namespace berth::supervise
