#include "berth/sys/clock.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <optional>
#include <vector>

#include "berth/sys/child.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/file.h"
#include "berth/sys/newer_calls.h"

namespace berth::sys {
namespace {

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// The C library takes the zone from TZ alone, and to change TZ is not safe beside other threads. So a process
// without TZ is asked. nullopt: there is no such program.
std::optional<DayMinute> minute_without_tz() {
  constexpr std::chrono::seconds kPatience{5};
  const Descriptor out = memory_file("berth-date");
  if (!out) return std::nullopt;
  for (const char* program : {"/usr/bin/date", "/bin/date", "/run/current-system/sw/bin/date"}) {
    if (::access(program, X_OK) != 0) continue;
    auto date = Child::spawn({.program = program,
                              .arguments = {"+%u %H %M"},
                              .output = out.get(),
                              .environment = std::vector<std::string>{}});
    if (!date || !date->wait(kPatience)) continue;
    const auto said = read_start(out.get(), 16);
    unsigned day = 0;
    unsigned hour = 0;
    unsigned minute = 0;
    if (said && std::sscanf(said->c_str(), "%1u %2u %2u", &day, &hour, &minute) == 3)
      return DayMinute{(day + 6) % 7, hour * 60 + minute};
  }
  return std::nullopt;
}

// An agent asks for each guest of a long line, and the answer is the same for a minute.
std::optional<DayMinute> minute_without_tz_at(std::time_t minutes_since_epoch) {
  static std::mutex mutex;
  static std::time_t asked_at = -1;
  static std::optional<DayMinute> answer;
  const std::scoped_lock lock(mutex);
  if (asked_at != minutes_since_epoch) answer = minute_without_tz();
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

std::int64_t seconds_since_boot() {
  return std::chrono::duration_cast<std::chrono::seconds>(since_boot()).count();
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

DayMinute machine_minute() {
  const std::time_t now = std::time(nullptr);
  if (std::getenv("TZ") != nullptr) {
    if (const auto minute = minute_without_tz_at(now / 60)) return *minute;
  }
  std::tm parts{};
  localtime_r(&now, &parts);
  // The calendar of C begins its week on Sunday.
  return {static_cast<unsigned>(parts.tm_wday + 6) % 7,
          static_cast<unsigned>(parts.tm_hour * 60 + parts.tm_min)};
}

}  // namespace berth::sys
