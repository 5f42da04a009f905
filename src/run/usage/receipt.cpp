#include "berth/usage/receipt.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/record_fields.h"
#include "berth/queue/schedule.h"

namespace berth {
namespace {

constexpr std::string_view kReceiptBegin = "berth-receipt 1\tlease=";
constexpr std::size_t kLongestCommand = 200;
constexpr std::size_t kEnoughRuns = 3;
constexpr std::int64_t kSecond = 1000;

constexpr auto kFieldsOfDevice = [](auto& device, auto&& field) {
  field("label", device.label);
  field("uuid", device.uuid);
  field("model", device.model);
  field("energy_mj", device.energy_mj);
  field("peak_bytes", device.peak_bytes);
  field("total_bytes", device.total_bytes);
  field("use_percent", device.use_percent);
  field("throttled_percent", device.throttled_percent);
};

constexpr auto kFieldsOfReceipt = [](auto& receipt, auto&& field) {
  field("lease", receipt.lease);
  field("job", receipt.job);
  field.time("ended_at", receipt.ended_s);
  field("fingerprint", receipt.fingerprint);
  field("shape", receipt.shape);
  field("program", receipt.program);
  field("command", receipt.command);
  field("waited_ms", receipt.waited_ms);
  field("lasted_ms", receipt.lasted_ms);
  field("ending", receipt.ending);
  field("exit_status", receipt.exit_status);
  field("signal", receipt.signal);
  field("promise", receipt.promise_bytes);
  field("driver", receipt.driver);
  field("sampled_every_ms", receipt.sampled_every_ms);
  field("clean", receipt.clean);
  field("accounted", receipt.is_accounted);
  field.sections("device", receipt.devices, kFieldsOfDevice);
  field.sections(kOutsider, receipt.outsiders, kFieldsOfOutsider);
};

constexpr auto kReceipt = record_of<Receipt>("berth-receipt", 1, kFieldsOfReceipt, kLongestCommand);

std::optional<Receipt> whole_receipt(std::string line) {
  std::ranges::replace(line, '\t', '\n');
  auto receipt = kReceipt.decode(line);
  if (!receipt || receipt->waited_ms < 0 || receipt->lasted_ms < 0) return std::nullopt;
  return *std::move(receipt);
}

std::optional<Receipt> receipt_from_line(std::string_view line) {
  // A line that was cut off before it has no end of its own. No value has a tab, so nothing else
  // reads so.
  const std::size_t last = line.rfind(kReceiptBegin);
  return last == std::string_view::npos ? std::nullopt : whole_receipt(std::string(line.substr(last)));
}

/// A line without an end is left out: it may still be written.
void for_each_line(std::string_view text, const auto& use) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    use(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
}

std::vector<Moment> lasted_where(std::span<const Receipt> receipts, const auto& counts) {
  std::vector<Moment> lasted;
  for (const Receipt& receipt : receipts) {
    if (receipt.lasted_ms >= kShortestRun * kSecond && counts(receipt))
      lasted.push_back(receipt.lasted_ms / kSecond);
  }
  return lasted;
}

/// REQUIRES: not empty.
std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

Reading<std::uint64_t> energy_mj_of(const Receipt& receipt) {
  if (receipt.devices.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const DeviceReceipt& device : receipt.devices) {
    if (!device.energy_mj) return std::nullopt;
    sum += *device.energy_mj;
  }
  return sum;
}

Reading<std::uint64_t> peak_bytes_of(const Receipt& receipt) {
  Reading<std::uint64_t> highest;
  for (const DeviceReceipt& device : receipt.devices) highest = std::max(highest, device.peak_bytes);
  return highest;
}

Reading<unsigned> use_percent_of(const Receipt& receipt) {
  unsigned sum = 0;
  unsigned told = 0;
  for (const DeviceReceipt& device : receipt.devices) {
    sum += device.use_percent.value_or(0);
    told += device.use_percent ? 1 : 0;
  }
  return told == 0 ? std::nullopt : Reading<unsigned>(sum / told);
}

Reading<unsigned> throttled_percent_of(const Receipt& receipt) {
  Reading<unsigned> highest;
  for (const DeviceReceipt& device : receipt.devices) highest = std::max(highest, device.throttled_percent);
  return highest;
}

Reading<bool> is_clean(const Receipt& receipt, const RunSamples& samples) {
  // The first and the last look are a part of the interval away from begin and end, and a look
  // takes its time.
  constexpr std::int64_t kMissed = 2;
  if (!receipt.outsiders.empty() || throttled_percent_of(receipt).value_or(0) > 0) return false;
  const bool all_tell = std::ranges::all_of(
      receipt.devices, [](const DeviceReceipt& device) { return device.throttled_percent.has_value(); });
  const bool are_all_there = (samples.samples + kMissed) * samples.every_ms >= receipt.lasted_ms;
  return samples.samples > 0 && all_tell && are_all_there ? Reading<bool>(true) : std::nullopt;
}

RunFigures figures_of(const Receipt& receipt) {
  return {energy_mj_of(receipt), peak_bytes_of(receipt), use_percent_of(receipt)};
}

std::string encode_receipt(const Receipt& receipt) {
  std::string line = kReceipt.encode(receipt);
  for (char& each : line) each = each == '\t' ? ' ' : each == '\n' ? '\t' : each;
  line.back() = '\n';
  return line;
}

std::vector<Receipt> decode_receipts(std::string_view text) {
  std::vector<Receipt> receipts;
  for_each_line(text, [&](std::string_view line) {
    if (auto receipt = receipt_from_line(line)) receipts.push_back(*std::move(receipt));
  });
  return receipts;
}

std::string without_program(std::string_view text, std::string_view program) {
  std::string rest;
  for_each_line(text, [&](std::string_view line) {
    const auto receipt = receipt_from_line(line);
    if (!receipt || receipt->program != program) rest += line;
  });
  return rest;
}

std::vector<Receipt> merged(std::vector<std::vector<Receipt>> of_machines, std::int64_t now_s) {
  std::vector<std::pair<std::int64_t, Receipt>> all;
  for (std::vector<Receipt>& receipts : of_machines) {
    std::int64_t latest_s = 0;
    for (Receipt& receipt : receipts) {
      if (receipt.ended_s <= now_s) latest_s = std::max(latest_s, receipt.ended_s);
      all.emplace_back(latest_s, std::move(receipt));
    }
  }
  std::ranges::stable_sort(all, {}, [](const auto& each) { return each.first; });
  std::vector<Receipt> receipts;
  for (auto& each : all) receipts.push_back(std::move(each.second));
  return receipts;
}

std::string_view last_lines(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  // The line whose end this finds may have begun before.
  const std::size_t end = text.find('\n', text.size() - most_bytes - 1);
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

std::vector<Moment> earlier_runs(std::span<const Receipt> receipts, std::uint32_t uid,
                                 std::string_view command) {
  const std::uint64_t shape = shape_of(uid, command);
  const std::uint64_t fingerprint = fingerprint_of(uid, command);
  std::array<std::vector<Moment>, 3> found{
      lasted_where(receipts, [&](const Receipt& r) { return r.shape == shape; }),
      lasted_where(receipts, [&](const Receipt& r) { return r.fingerprint == fingerprint; }),
      lasted_where(receipts, [](const Receipt&) { return true; })};
  for (const std::size_t least : {kEnoughRuns, std::size_t{1}}) {
    for (std::vector<Moment>& lasted_s : found) {
      if (lasted_s.size() >= least) return std::move(lasted_s);
    }
  }
  return {};
}

std::vector<ProgramRuns> runs_by_program(std::span<const Receipt> receipts) {
  std::map<std::uint64_t, std::vector<const Receipt*>> groups;
  std::vector<std::uint64_t> order;  // the one that ran last, last
  for (const Receipt& receipt : receipts) {
    groups[receipt.fingerprint].push_back(&receipt);
    std::erase(order, receipt.fingerprint);
    order.push_back(receipt.fingerprint);
  }
  std::vector<ProgramRuns> programs;
  for (auto each = order.rbegin(); each != order.rend(); ++each) {
    const std::vector<const Receipt*>& runs = groups[*each];
    ProgramRuns& program =
        programs.emplace_back(ProgramRuns{runs.back()->program, runs.back()->command, runs.size()});
    std::vector<std::int64_t> lasted;
    for (const Receipt* run : runs) {
      lasted.push_back(run->lasted_ms);
      if (run->ending == Ending::badly) ++program.badly;
      program.peak_bytes = std::max(program.peak_bytes, peak_bytes_of(*run));
      if (const auto energy = energy_mj_of(*run)) program.energy_mj = program.energy_mj.value_or(0) + *energy;
    }
    program.median_ms = median(std::move(lasted));
    program.last_s = runs.back()->ended_s;
  }
  return programs;
}

namespace {

constexpr std::size_t kMostRuns = 20;
constexpr std::size_t kQuantilePercent = 95;
constexpr std::uint64_t kMarginPart = 10;
constexpr std::uint64_t kStep = 256ULL << 20U;
// Of a run that had fewer looks, nobody knows its peak.
constexpr std::int64_t kFewestLooks = 6;

struct KnownRun {
  std::uint64_t peak_bytes = 0;
  std::uint64_t smallest_device_bytes = 0;
};

std::optional<KnownRun> known_run(const Receipt& receipt) {
  const auto peak = peak_bytes_of(receipt);
  if (receipt.ending != Ending::well || peak.value_or(0) == 0) return std::nullopt;
  const auto every_ms = static_cast<std::int64_t>(receipt.sampled_every_ms.value_or(0));
  if (!receipt.is_accounted && (every_ms == 0 || receipt.lasted_ms / every_ms < kFewestLooks))
    return std::nullopt;
  KnownRun run{*peak, 0};
  for (const DeviceReceipt& device : receipt.devices) {
    const std::uint64_t total = device.total_bytes.value_or(0);
    if (total == 0) return std::nullopt;
    if (run.smallest_device_bytes == 0 || total < run.smallest_device_bytes)
      run.smallest_device_bytes = total;
  }
  return run;
}

std::vector<KnownRun> known_runs(std::span<const Receipt> receipts, const auto& counts) {
  std::vector<KnownRun> runs;
  for (auto receipt = receipts.rbegin(); receipt != receipts.rend() && runs.size() < kMostRuns; ++receipt) {
    if (!counts(*receipt)) continue;
    if (const auto run = known_run(*receipt)) runs.push_back(*run);
  }
  return runs;
}

/// REQUIRES: not empty.
std::uint64_t promise_by(std::vector<KnownRun> runs) {
  std::ranges::sort(runs, {}, &KnownRun::peak_bytes);
  const std::uint64_t likely = runs[(runs.size() * kQuantilePercent + 99) / 100 - 1].peak_bytes;
  const std::uint64_t range = runs.back().peak_bytes - runs.front().peak_bytes;
  const std::uint64_t promise = likely + std::max(likely / kMarginPart, range / 2);
  return (promise + kStep - 1) / kStep * kStep;
}

}  // namespace

MemoryByRuns memory_by_runs(std::span<const Receipt> receipts, std::uint32_t uid, std::string_view command) {
  const std::uint64_t shape = shape_of(uid, command);
  const std::uint64_t fingerprint = fingerprint_of(uid, command);
  auto runs = known_runs(receipts, [&](const Receipt& receipt) { return receipt.shape == shape; });
  if (runs.size() < kRunsForMemory)
    runs = known_runs(receipts, [&](const Receipt& receipt) { return receipt.fingerprint == fingerprint; });
  MemoryByRuns memory{std::nullopt, runs.size()};
  if (runs.size() < kRunsForMemory) return memory;
  const std::uint64_t smallest =
      std::ranges::min(runs, {}, &KnownRun::smallest_device_bytes).smallest_device_bytes;
  const std::uint64_t promise = promise_by(std::move(runs));
  if (promise <= smallest - smallest / 10) memory.bytes = promise;
  return memory;
}

std::string in_words(const MemoryByRuns& memory) {
  if (memory.bytes)
    return fmt::format("--memory auto: {} on each GPU, by the last {} runs", bytes_for_people(*memory.bytes),
                       memory.runs);
  if (memory.runs >= kRunsForMemory)
    return fmt::format("--memory auto: a whole GPU, since the last {} runs needed most of one", memory.runs);
  return fmt::format("--memory auto: a whole GPU, since the memory of {} runs is known, and {} are needed",
                     memory.runs == 0 ? "no earlier" : fmt::format("only {} earlier", memory.runs),
                     kRunsForMemory);
}

}  // namespace berth
