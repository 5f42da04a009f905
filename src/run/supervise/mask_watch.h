#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/receipts/sampler_client.h"
#include "berth/request/job_mask.h"
#include "berth/verdict/ledger.h"

namespace berth::supervise {

/// Notices that a mask of indices means other devices than it did: a card has gone, so a program of
/// the job that starts now would compute on another's device. Goes by the samples of the lease, so
/// it asks no driver. If they are switched off, it notices nothing.
class MaskWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  MaskWatch(const Ticket& lease, const JobMask& mask, const receipts::RunSampling& sampling);

  /// The latest moment at which to call `go_on`; nullopt: never again.
  std::optional<Time> next() const { return next_; }
  /// What to tell the user, once. Never waits.
  std::optional<std::string> go_on();

 private:
  const receipts::RunSampling& sampling_;
  std::vector<std::string> devices_;   ///< UUIDs
  std::vector<std::int64_t> indices_;  ///< one for each device
  std::string setting_, better_;       ///< "CUDA_VISIBLE_DEVICES=1"; the same by UUIDs
  std::optional<Time> next_;
};

}  // namespace berth::supervise
