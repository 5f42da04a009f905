#include "berth/source/proc/kernel_log.h"

#include <sys/klog.h>

#include <cstdlib>

#include "berth/source/proc/small_file.h"

namespace berth::source {

std::optional<std::string> kernel_log() {
  constexpr std::size_t kMost = 512 << 10;
  constexpr int kReadAll = 3;
  const char* root = std::getenv("BERTH_SIM_ROOT");
  if (root != nullptr && *root != '\0') return read_small_file(std::string(root) + "/dev/kmsg", kMost);
  std::string text;
  int length = 0;
  text.resize_and_overwrite(kMost, [&](char* bytes, std::size_t size) {
    length = ::klogctl(kReadAll, bytes, static_cast<int>(size));
    return static_cast<std::size_t>(length > 0 ? length : 0);
  });
  return length < 0 ? std::nullopt : std::optional(std::move(text));
}

Xids::Xids(ReadingSet readings) {
  if (!readings.has(ReadingKind::xid)) return;
  if (const auto log = kernel_log()) seen_ = xids_in(*log);
}

ReadingSet Xids::needed(ReadingSet readings) const {
  return seen_ && !seen_->empty() ? readings | ReadingKind::pci : readings;
}

void Xids::note(Device& device) const {
  if (seen_) device.health.last_xid = telling_xid(*seen_, device);
}

}  // namespace berth::source
