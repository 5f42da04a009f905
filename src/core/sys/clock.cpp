#include "berth/sys/clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <mutex>
#include <string_view>
#include <vector>

#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::sys {
namespace {

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

constexpr std::int64_t kDayS = 24 * 3600;
constexpr std::int64_t kWeekS = 7 * kDayS;

/// Seconds of a week that begins on Monday; the first day of the epoch was a Thursday.
std::int64_t second_of_week(std::int64_t seconds_since_epoch) {
  return ((seconds_since_epoch + 3 * kDayS) % kWeekS + kWeekS) % kWeekS;
}

// The C library takes the zone from TZ alone, and to change TZ is not safe beside other threads. So
// a process without TZ is asked. Gives how far the machine's clock is ahead of UTC; nullopt: there
// is no such program.
std::optional<std::int64_t> offset_without_tz() {
  constexpr std::chrono::seconds kPatience{5};
  const Descriptor out = memory_file("berth-date");
  if (!out) return std::nullopt;
  for (const char* program : {"/usr/bin/date", "/bin/date", "/run/current-system/sw/bin/date"}) {
    if (::access(program, X_OK) != 0) continue;
    auto date = Child::spawn({.program = program,
                              .arguments = {"+%s %u %H %M %S"},
                              .output = out.get(),
                              .environment = std::vector<std::string>{}});
    if (!date || !date->wait(kPatience)) continue;
    const auto said = read_start(out.get(), 64);
    std::int64_t at = 0;
    std::array<unsigned, 4> local{};  // day of the week, hour, minute, second
    if (said && std::sscanf(said->c_str(), "%20" SCNd64 " %1u %2u %2u %2u", &at, &local[0], &local[1],
                            &local[2], &local[3]) == 5)
      return (local[0] - 1) * kDayS + local[1] * 3600 + local[2] * 60 + local[3] - second_of_week(at);
  }
  return std::nullopt;
}

// An agent asks for each guest of a long line, and the answer is the same for a minute.
std::optional<std::int64_t> offset_without_tz_at(std::time_t minutes_since_epoch) {
  static std::mutex mutex;
  static std::time_t asked_at = -1;
  static std::optional<std::int64_t> answer;
  const std::scoped_lock lock(mutex);
  if (asked_at != minutes_since_epoch) answer = offset_without_tz();
  asked_at = minutes_since_epoch;
  return answer;
}

}  // namespace

std::chrono::nanoseconds monotonic_now() {
  return read_clock(CLOCK_MONOTONIC);
}
std::chrono::nanoseconds wall_now() {
  return read_clock(CLOCK_REALTIME);
}
std::chrono::nanoseconds since_boot() {
  return read_clock(CLOCK_BOOTTIME);
}

int poll_timeout(const Deadline& until) {
  if (!until) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

std::int64_t milliseconds_since_boot() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_boot()).count();
}

std::string boot_id() {
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text;
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : -1;
  const std::string_view read(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return std::string(read.substr(0, read.find('\n')));
}

std::int64_t booted_at_s() {
  return std::chrono::round<std::chrono::seconds>(wall_now() - since_boot()).count();
}

std::string wall_text(std::int64_t seconds_since_epoch) {
  const std::time_t then = seconds_since_epoch;
  const std::time_t now = std::time(nullptr);
  std::tm then_parts{};
  std::tm now_parts{};
  localtime_r(&then, &then_parts);
  localtime_r(&now, &now_parts);
  const bool today = then_parts.tm_year == now_parts.tm_year && then_parts.tm_yday == now_parts.tm_yday;
  std::array<char, 32> text{};
  const std::size_t length =
      std::strftime(text.data(), text.size(), today ? "%H:%M" : "%Y-%m-%d %H:%M", &then_parts);
  return {text.data(), length};
}

std::int32_t utc_offset_s(std::int64_t seconds_since_epoch) {
  const std::time_t then = seconds_since_epoch;
  std::tm parts{};
  return localtime_r(&then, &parts) == nullptr ? 0 : static_cast<std::int32_t>(parts.tm_gmtoff);
}

WeekMinute machine_minute() {
  const std::time_t now = std::time(nullptr);
  if (std::getenv("TZ") != nullptr) {
    if (const auto offset = offset_without_tz_at(now / 60)) {
      const std::int64_t second = second_of_week(now + *offset);
      return {static_cast<unsigned>(second / kDayS), static_cast<unsigned>(second % kDayS / 60)};
    }
  }
  std::tm parts{};
  localtime_r(&now, &parts);
  // The calendar of C begins its week on Sunday.
  return {static_cast<unsigned>(parts.tm_wday + 6) % 7,
          static_cast<unsigned>(parts.tm_hour * 60 + parts.tm_min)};
}

using namespace std::chrono_literals;

WakeTimer::~WakeTimer() {
  if (timer_) ::timer_delete(*timer_);
}

void WakeTimer::set(std::chrono::nanoseconds after) {
  if (!timer_) {
    sigevent wanted{};
    wanted.sigev_notify = SIGEV_SIGNAL;
    wanted.sigev_signo = SIGCONT;
    timer_t made{};
    if (::timer_create(CLOCK_BOOTTIME, &wanted, &made) != 0) return;
    timer_ = made;
  }
  // 0 would mean never.
  after = std::max<std::chrono::nanoseconds>(after, 1ns);
  itimerspec times{};
  times.it_value = {after / 1s, (after % 1s).count()};
  times.it_interval.tv_sec = 1;
  ::timer_settime(*timer_, 0, &times, nullptr);
}

void WakeTimer::stop() {
  const itimerspec never{};
  if (timer_) ::timer_settime(*timer_, 0, &never, nullptr);
}

}  // namespace berth::sys
