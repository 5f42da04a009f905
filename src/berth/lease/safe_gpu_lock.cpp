#include "berth/lease/safe_gpu_lock.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <thread>

#include "berth/sys/lock.h"
#include "berth/sys/system_error.h"

namespace berth::leasing {
namespace {

using namespace std::chrono_literals;
using SafeGpuClock = std::chrono::steady_clock;

// A wait inside the kernel could not be bounded without a timer's signal.
constexpr auto kTryLockAgain = 20ms;

/// False: others have had it until `end`.
Result<bool> lock_by(int file, SafeGpuClock::time_point end) {
  for (;;) {
    BERTH_LET(const bool is_ours, sys::try_lock_bytes(file, 0, sys::kToTheEnd));
    if (is_ours || SafeGpuClock::now() >= end) return is_ours;
    std::this_thread::sleep_for(kTryLockAgain);
  }
}

}  // namespace

void SafeGpuLock::take(const std::vector<std::string>& files, std::chrono::milliseconds limit) {
  const auto end = SafeGpuClock::now() + limit;
  for (const std::string& path : files) {
    sys::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    // Nobody uses safe_gpu on this machine, or not yet.
    if (!file && (errno == ENOENT || errno == ENOTDIR)) continue;
    const auto locked = file ? lock_by(file.get(), end) : sys::fail_errno("opening it");
    if (locked && *locked) {
      add(std::move(file));
      continue;
    }
    const std::string why = locked ? "others keep it locked" : locked.error().message;
    note(fmt::format("{} cannot be locked: {}; an original safe_gpu is not kept away by it", path, why));
  }
}

}  // namespace berth::leasing
