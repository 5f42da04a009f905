#include "berth/receipts/make_receipt.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/command/environment.h"
#include "berth/job/job.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/source/probe_source.h"
#include "berth/sys/clock.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/environment.h"
#include "berth/sys/system_error.h"
#include "berth/view/receipt.h"

namespace berth::receipts {
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
  receipt.strangers = samples.strangers;
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
  std::vector<std::uint32_t> strangers;
  for (const Stranger& stranger : receipt.strangers) strangers.push_back(stranger.pid);
  for (DeviceReceipt& device : receipt.devices) {
    const Device* after = find_device(later, device.uuid);
    if (after == nullptr || after->mig || !after->accounted) continue;
    const AccountedUse use = accounted_use(*after->accounted, strangers, begun.count(), ended.count());
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
    : told_([receipt, folder = leasing::receipt_folder(), path = file] {
        if (folder) leasing::note_receipt(*folder, receipt);
        return write_file(path, receipt);
      }) {}

std::string ReceiptKeeping::trouble() {
  if (!trouble_) trouble_ = told_.within(kPatienceWithDisk);
  return *trouble_;
}

}  // namespace berth::receipts
