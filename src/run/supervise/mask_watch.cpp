#include "berth/supervise/mask_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/base/record.h"
#include "berth/base/text_match.h"

namespace berth::supervise {

MaskWatch::MaskWatch(const Ticket& lease, const JobMask& mask, const receipts::RunSampling& sampling)
    : sampling_(sampling), devices_(lease.devices) {
  const Vendor vendor = vendor_named(mask.vendor);
  if (!mask.by_index || vendor.mask_variable.empty() || sampling.every().count() == 0) return;
  for (const std::string_view word : parts_at(mask.visible, ','))
    indices_.push_back(number_from_text<std::int64_t>(word).value_or(kNotCounted));
  setting_ = fmt::format("{}={}", vendor.mask_variable, mask.visible);
  better_ = fmt::format("{}={}", vendor.mask_variable, fmt::join(devices_, ","));
  next_ = std::chrono::steady_clock::now() + sampling.every();
}

std::optional<std::string> MaskWatch::go_on() {
  const Time now = std::chrono::steady_clock::now();
  if (!next_ || now < *next_) return std::nullopt;
  next_ = now + sampling_.every();
  const auto samples = sampling_.samples();
  if (!samples || !is_renumbered(*samples, devices_, indices_)) return std::nullopt;
  next_.reset();
  return fmt::format(
      "the GPUs are numbered otherwise now, as one has gone or come back: with {}, a program of this lease "
      "that starts from now on would use another GPU than yours, maybe somebody else's; set {}, or start the "
      "job again",
      setting_, better_);
}

}  // namespace berth::supervise
