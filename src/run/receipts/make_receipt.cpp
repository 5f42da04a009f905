#include "berth/receipts/make_receipt.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "berth/api/lease_messages.h"
#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/job/job.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/receipts/sampler.h"
#include "berth/source/source.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/sys/socket.h"
#include "berth/view/receipt.h"

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
    text.resize(api::first_record(text));
    auto samples = decode_run_samples(text);
    if (samples && samples->samples > 0) return *std::move(samples);
    return std::nullopt;
  }
  return std::nullopt;
}

// In a thread, because a driver that hangs would else keep the command from its signals.

namespace {

using namespace std::chrono_literals;

constexpr auto kAsksAfter = 100ms;
// A driver that has not answered in the ten seconds before does not answer.
constexpr auto kPatience = 100ms;

}  // namespace

EnergyAtStart::EnergyAtStart(std::vector<std::string> uuids, source::SourceKind source)
    : uuids_(std::move(uuids)), source_(source) {
  if (!uuids_.empty()) due_ = std::chrono::steady_clock::now() + kAsksAfter;
}

void EnergyAtStart::go_on() {
  if (!due_ || std::chrono::steady_clock::now() < *due_) return;
  due_.reset();
  told_ = sys::DetachedAnswer<std::optional<Snapshot>>(
      [uuids = std::move(uuids_), kind = source_,
       options = command::probe_options()]() -> std::optional<Snapshot> {
        auto source = source::ProbeSource::start(options);
        if (!source) return std::nullopt;
        source->set_kind(kind);
        auto snapshot = source->read_of(uuids, ReadingKind::energy);
        return snapshot ? std::optional(*std::move(snapshot)) : std::nullopt;
      });
}

std::optional<Snapshot> EnergyAtStart::told() {
  return told_.within(kPatience);
}

namespace {

using namespace std::chrono_literals;

// A driver may need a second to wake up.
constexpr auto kWorthAsking = 10s;
// A disk that works is faster by far. What comes later is lost.
constexpr auto kPatienceWithDisk = 1s;
// The driver is awake, since the command has just used it.
constexpr auto kPatienceWithDriver = 2s;
constexpr std::uint64_t kHundred = 100;

// The counter begins anew when the driver is loaded. A part of a card has none of its own.
Reading<std::uint64_t> energy_between(const Snapshot& earlier, const Snapshot& later,
                                      const std::string& uuid) {
  const Device* before = find_device(earlier, uuid);
  const Device* after = find_device(later, uuid);
  if (before == nullptr || after == nullptr || before->mig || !before->energy_mj || !after->energy_mj ||
      *after->energy_mj < *before->energy_mj)
    return std::nullopt;
  return *after->energy_mj - *before->energy_mj;
}

bool can_tell(const std::optional<Snapshot>& before) {
  return before && !before->stale_reason &&
         std::ranges::any_of(before->devices, [](const Device& each) { return each.energy_mj.has_value(); });
}

// "": it is written, or none is wanted.
std::string write_file(const std::string& path, const Receipt& receipt) {
  if (path.empty()) return {};
  const std::string text = view::receipts_json({receipt}, view::Layout::lines);
  const sys::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  const auto written =
      file ? command::write_all(file.get(), text) : Result<void>(sys::fail_errno("opening it"));
  if (written) return {};
  return fmt::format("the receipt is not written to {} (BERTH_RECEIPT): {}", printable(path),
                     written.error().message);
}

// Rounded up: what was seen once is not nothing.
unsigned percent_of(std::uint64_t part, std::uint64_t whole) {
  return static_cast<unsigned>((kHundred * part + whole - 1) / whole);
}

void take_samples(Receipt& receipt, const RunSamples& samples) {
  receipt.sampled_every_ms = static_cast<std::uint64_t>(samples.every_ms);
  receipt.outsiders = samples.outsiders;
  for (DeviceReceipt& device : receipt.devices) {
    const auto found = std::ranges::find(samples.devices, device.uuid, &DeviceSamples::uuid);
    if (found == samples.devices.end()) continue;
    device.peak_bytes = found->peak_bytes;
    if (found->use_samples > 0) device.use_percent = static_cast<unsigned>(found->used / found->use_samples);
    if (found->throttle_samples > 0)
      device.throttled_percent = percent_of(found->throttled_samples, found->throttle_samples);
  }
}

// Better than samples: it misses nothing.
void take_accounting(Receipt& receipt, const Snapshot& later, std::chrono::milliseconds lasted) {
  const auto ended = std::chrono::duration_cast<std::chrono::microseconds>(sys::wall_now());
  const auto begun = ended - lasted;
  std::vector<std::uint32_t> outsiders;
  for (const Outsider& outsider : receipt.outsiders) outsiders.push_back(outsider.pid);
  for (DeviceReceipt& device : receipt.devices) {
    const Device* after = find_device(later, device.uuid);
    if (after == nullptr || after->mig || !after->accounted) continue;
    const AccountedUse use = accounted_use(*after->accounted, outsiders, begun.count(), ended.count());
    if (use.peak_bytes) device.peak_bytes = use.peak_bytes;
    if (use.use_percent) device.use_percent = use.use_percent;
    receipt.is_accounted = receipt.is_accounted || use.peak_bytes.has_value();
  }
}

}  // namespace

ReadMachine read_at_end(source::SourceKind kind) {
  return [kind]() -> std::optional<Snapshot> {
    sys::DetachedAnswer<std::optional<Snapshot>> told(
        [kind, options = command::probe_options()]() -> std::optional<Snapshot> {
          auto source = source::ProbeSource::start(options);
          if (!source) return std::nullopt;
          source->set_kind(kind);
          auto snapshot = source->read(ReadingKind::health | ReadingKind::energy | ReadingKind::driver |
                                       ReadingKind::accounting);
          return snapshot ? std::optional(*std::move(snapshot)) : std::nullopt;
        });
    return told.within(kPatienceWithDriver);
  };
}

bool is_worth_asking(std::chrono::milliseconds lasted) {
  return lasted >= kWorthAsking;
}

Receipt receipt_at_grant(const Ticket& ticket, const std::vector<const Device*>& devices) {
  Receipt receipt;
  receipt.lease = ticket.id;
  if (const auto job = task_note_from_text(ticket.note)) receipt.job = to_text(job->task);
  receipt.fingerprint = fingerprint_of(ticket.uid, ticket.command);
  receipt.shape = shape_of(ticket.uid, ticket.command);
  receipt.program = told_program(ticket.command);
  receipt.command = ticket.command;
  receipt.waited_ms = std::max<std::int64_t>(granted_at(ticket) - joined_at(ticket), 0);
  receipt.promise_bytes = ticket.shared ? ticket.promise_bytes : 0;
  for (const Device* device : devices)
    receipt.devices.emplace_back(DeviceReceipt{label(*device), device->uuid, device->name}).total_bytes =
        device->memory.total_bytes;
  return receipt;
}

void end_receipt(Receipt& receipt, const RunEnd& end, const std::optional<RunSamples>& samples,
                 const ReadMachine& at_start, const ReadMachine& read) {
  receipt.ended_s = std::chrono::floor<std::chrono::seconds>(sys::wall_now()).count();
  receipt.lasted_ms = end.lasted.count();
  receipt.ending = noted_as(end);
  set_end(receipt, end.process);
  std::optional<Snapshot> before;
  std::optional<Snapshot> later;
  if (is_worth_asking(end.lasted)) before = at_start();
  if (can_tell(before)) later = read();
  if (later) {
    receipt.driver = later->driver_version;
    for (DeviceReceipt& device : receipt.devices)
      device.energy_mj = energy_between(*before, *later, device.uuid);
  }
  if (samples) {
    take_samples(receipt, *samples);
    receipt.clean = is_clean(receipt, *samples);
  }
  if (later) take_accounting(receipt, *later, end.lasted);
}

Receipt receipt_of(const Ticket& ticket, const std::vector<const Device*>& devices, const RunEnd& end,
                   const std::optional<RunSamples>& samples, const ReadMachine& at_start,
                   const ReadMachine& read) {
  Receipt receipt = receipt_at_grant(ticket, devices);
  end_receipt(receipt, end, samples, at_start, read);
  return receipt;
}

std::string named_receipt_file() {
  return std::string(sys::variable("BERTH_RECEIPT"));
}

ReceiptKeeping::ReceiptKeeping(const Receipt& receipt, const std::string& file)
    : told_([receipt, folder = receipt_folder(), path = file] {
        if (folder) note_receipt(*folder, receipt);
        return write_file(path, receipt);
      }) {}

std::string ReceiptKeeping::trouble() {
  if (!trouble_) trouble_ = told_.within(kPatienceWithDisk);
  return *trouble_;
}

}  // namespace berth::receipts
