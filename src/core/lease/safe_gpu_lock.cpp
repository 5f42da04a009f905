#include "berth/lease/safe_gpu_lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/printable.h"
#include "berth/sys/file.h"
#include "berth/sys/lock.h"
#include "berth/sys/process_identity.h"

namespace berth::leasing {

std::string in_words(const SafeGpuHolder& holder) {
  const auto owner = holder.pid > 0 ? sys::process_owner(holder.pid) : std::nullopt;
  if (!owner) return fmt::format("another process has the lock of safe_gpu, {}", printable(holder.file));
  return fmt::format("{} ({}, pid {}) has the lock of safe_gpu, {}", sys::user_name(*owner),
                     printable(listed_words(sys::process_command(holder.pid))), holder.pid,
                     printable(holder.file));
}

std::optional<SafeGpuHolder> SafeGpuLock::take(const std::vector<std::string>& files,
                                               const std::vector<SafeGpuHolder>& kept) {
  std::vector<std::string> odd;
  for (const std::string& path : files) {
    auto file = open_or_make_lock(path);
    const auto holder = file ? sys::share_bytes(file->get(), 0, sys::kToTheEnd)
                             : Result<std::optional<pid_t>>(std::unexpected(file.error()));
    if (!holder) {
      odd.push_back(fmt::format("{} cannot be locked: {}; an original safe_gpu is not kept away by it", path,
                                holder.error().message));
    } else if (!*holder) {
      add(*std::move(file));
    } else if (const SafeGpuHolder who{path, **holder}; std::ranges::find(kept, who) != kept.end()) {
      odd.push_back(fmt::format("{}, and keeps it; an original safe_gpu is not kept away", in_words(who)));
    } else {
      release();
      return who;
    }
  }
  for (std::string& words : odd) note(std::move(words));
  return std::nullopt;
}

}  // namespace berth::leasing
