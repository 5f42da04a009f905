#include "machine/process_life.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace berth::sim {
namespace {

constexpr std::size_t kMostBytes = 16 * 1024 * 1024;

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace

std::string read_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return {};
  std::string text;
  char block[4096];
  while (text.size() < kMostBytes) {
    const ssize_t got = read(fd, block, sizeof block);
    if (got <= 0) break;
    text.append(block, static_cast<std::size_t>(got));
  }
  close(fd);
  return text;
}

std::uint64_t start_time(std::int64_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(pid));
  const std::string stat = read_file(path);
  // The name, in parentheses, may hold anything; the fields go on behind the last one.
  const std::size_t close_at = stat.rfind(')');
  if (close_at == std::string::npos || close_at + 2 >= stat.size()) return 0;
  const char* field = stat.c_str() + close_at + 2;
  const bool first_thread_ended = *field == 'Z' || *field == 'X';
  for (int number = 3; number < 22 && field != nullptr; ++number) {
    // How many threads there are: the others may go on without the first.
    if (number == 20 && first_thread_ended && std::strtoull(field, nullptr, 10) <= 1) return 0;
    field = std::strchr(field, ' ');
    if (field != nullptr) ++field;
  }
  return field != nullptr ? std::strtoull(field, nullptr, 10) : 0;
}

std::int64_t started_at_ns(std::uint64_t start_ticks) {
  const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  const auto since_boot = static_cast<std::int64_t>(start_ticks * (1'000'000'000ULL / per_second));
  return now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME) + since_boot;
}

std::string program_name(std::int64_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%lld/cmdline", static_cast<long long>(pid));
  std::string name = read_file(path);
  name.resize(std::strlen(name.c_str()));
  if (!name.empty()) return name;
  std::snprintf(path, sizeof path, "/proc/%lld/comm", static_cast<long long>(pid));
  name = read_file(path);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace berth::sim
