#include "berth/sys/clock.h"

#include <array>
#include <ctime>

namespace berth::sys {
namespace {

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
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

std::int64_t milliseconds_since_boot() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_boot()).count();
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

DayMinute local_minute() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  // The calendar of C begins its week on Sunday.
  return {static_cast<unsigned>(parts.tm_wday + 6) % 7,
          static_cast<unsigned>(parts.tm_hour * 60 + parts.tm_min)};
}

}  // namespace berth::sys
