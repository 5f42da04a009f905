#include "berth/receipts/sampler_client.h"

#include <array>
#include <utility>

#include "berth/api/lease_messages.h"
#include "berth/base/delay.h"
#include "berth/receipts/sampler.h"
#include "berth/sys/environment.h"
#include "berth/sys/file.h"
#include "berth/sys/newer_calls.h"
#include "berth/sys/socket_message.h"

namespace berth::receipts {
namespace {

using namespace std::chrono_literals;

constexpr auto kSampleEvery = 10s;
constexpr auto kCleanSampleEvery = 1s;
constexpr int kFirstAfter = 6;
constexpr std::size_t kMostSampleBytes = 64UL << 10U;
// A sampler that was about to end when this run came, or that could not begin.
constexpr int kMostTries = 2;
constexpr int kReadsUntilAlike = 8;

std::optional<std::chrono::milliseconds> milliseconds_from_text(std::string_view text) {
  constexpr std::string_view kUnit = "ms";
  if (!text.ends_with(kUnit)) return std::nullopt;
  const auto count = number_from_text<unsigned>(text.substr(0, text.size() - kUnit.size()));
  return count && *count > 0 ? std::optional(std::chrono::milliseconds(*count)) : std::nullopt;
}

}  // namespace

Result<std::optional<SamplingTimes>> sampling_times(bool clean) {
  const std::string_view set = sys::variable("BERTH_SAMPLE");
  if (set == "never") return std::nullopt;
  std::chrono::milliseconds every = clean ? kCleanSampleEvery : kSampleEvery;
  if (const auto told = milliseconds_from_text(set)) {
    every = *told;
  } else if (!set.empty()) {
    const auto seconds = delay_from_text(set);
    if (!seconds) return std::unexpected(context(seconds.error(), "BERTH_SAMPLE (a time, or never)"));
    if (*seconds == 0) return fail(ErrorCode::usage, "BERTH_SAMPLE: the shortest time is 1ms");
    every = std::chrono::seconds(*seconds);
  }
  return SamplingTimes{every, clean ? 0ms : every * kFirstAfter};
}

std::string machine_directory(const leasing::Domain& domain) {
  return (domain.around.empty() ? domain.store : domain.around.front().store)->path();
}

SampledLease sampled_lease(const Ticket& ticket, const leasing::Domain& domain,
                           const std::optional<SamplingTimes>& times) {
  return {.lease = ticket.id,
          .shared = ticket.shared,
          .path = domain.path_of(ticket.id),
          .machine = machine_directory(domain),
          .devices = ticket.devices,
          .every_ms = times ? times->every.count() : 0,
          // The process that asks for samples may not be the one that computes.
          .job = ticket.job.pid != 0 ? ticket.job : ticket.taker};
}

RunSampling::RunSampling(const Ticket& ticket, const leasing::Domain& domain, source::SourceKind source,
                         const std::optional<SamplingTimes>& times)
    : RunSampling(sampled_lease(ticket, domain, times), source, times ? times->after : 0ms) {}

RunSampling::RunSampling(SampledLease lease, source::SourceKind source, std::chrono::milliseconds after)
    : lease_(std::move(lease)), source_(source) {
  if (lease_.every_ms > 0) next_ = std::chrono::steady_clock::now() + after;
}

void RunSampling::go_on() {
  if (!next_ || std::chrono::steady_clock::now() < *next_) return;
  next_.reset();
  if (samples()) return;
  begin();
  if (++tries_ < kMostTries)
    next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(lease_.every_ms) + 1s;
}

void RunSampling::begin() {
  seen_ = sys::memory_file("berth-samples");
  if (!seen_) return;
  sampler_ = connect_to_sampler(lease_.machine, source_);
  if (!sampler_) return;
  const std::array<int, 1> seen{seen_.get()};
  if (!sys::send_message(sampler_.get(), encode_sampled_lease(lease_), seen)) sampler_.close();
}

std::optional<RunSamples> RunSampling::samples() const {
  if (!seen_) return std::nullopt;
  // The sampler may write at this moment.
  std::string before;
  for (int read = 0; read < kReadsUntilAlike; ++read) {
    std::string text = sys::read_start(seen_.get(), kMostSampleBytes).value_or("");
    if (text != std::exchange(before, text)) continue;
    text.resize(leasing::first_record(text));
    auto samples = decode_run_samples(text);
    if (samples && samples->samples > 0) return *std::move(samples);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace berth::receipts
