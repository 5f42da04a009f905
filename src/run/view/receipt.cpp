#include "berth/view/receipt.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/view/json.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
namespace {

constexpr double kMillijoulesInWh = 3.6e6;
constexpr double kWhInKwh = 1000;
constexpr std::size_t kShownCommand = 40;
constexpr std::size_t kRunningCommand = 200;

std::string span_text(std::int64_t milliseconds) {
  return duration_for_people(std::chrono::milliseconds(milliseconds));
}

std::string labels_of(const Receipt& receipt) {
  std::string labels;
  for (const DeviceReceipt& device : receipt.devices)
    labels += (labels.empty() ? "" : ",") + printable(device.label);
  return labels;
}

std::string models_of(const Receipt& receipt) {
  std::string models;
  for (const DeviceReceipt& device : receipt.devices) {
    if (!models.contains(device.model)) models += (models.empty() ? "" : ", ") + device.model;
  }
  return printable(models);
}

std::string ending_text(const Receipt& receipt) {
  if (receipt.signal) return fmt::format("killed by signal {}", *receipt.signal);
  // A lease of a library: its program goes on, or its end was not seen.
  if (!receipt.exit_status && receipt.ending == Ending::badly)
    return "badly: the program says that it failed";
  if (!receipt.exit_status && receipt.ending == Ending::by_others) return "with its program";
  if (receipt.exit_status.value_or(0) != 0) return fmt::format("exit status {}", *receipt.exit_status);
  return receipt.ending == Ending::by_others ? "well, after it was asked to" : "well";
}

/// An object of JSON, written key by key: a list in braces would copy each value.
class JsonFields {
 public:
  explicit JsonFields(std::size_t count) { fields_.reserve(count); }
  template <class Value>
  JsonFields& add(const char* key, Value&& value) {
    fields_.emplace_back(key, std::forward<Value>(value));
    return *this;
  }
  Json take() { return Json(std::move(fields_)); }

 private:
  Json::object_t fields_;
};

Json device_json_of(const DeviceReceipt& device) {
  return JsonFields(7)
      .add("label", device.label)
      .add("uuid", device.uuid)
      .add("name", device.model)
      .add("energy_mj", nullable(device.energy_mj))
      .add("peak_bytes", nullable(device.peak_bytes))
      .add("use_percent", nullable(device.use_percent))
      .add("throttled_percent", nullable(device.throttled_percent))
      .take();
}

Json outsider_json(const Outsider& outsider) {
  return {{"device", outsider.device},
          {"pid", outsider.pid},
          {"user", text_or_null(outsider.user)},
          {"command", text_or_null(outsider.command)},
          {"seen_ms", outsider.seen_ms}};
}

// Where the peak is from: a sample may miss what is shorter.
std::string bound_of(const Receipt& receipt) {
  if (receipt.is_accounted || !receipt.sampled_every_ms) return {};
  return fmt::format(" (a look every {})", span_text(static_cast<std::int64_t>(*receipt.sampled_every_ms)));
}

std::string percent_text(const Reading<unsigned>& percent) {
  return percent ? fmt::format("{} %", *percent) : std::string(kUnknown);
}

// "pid 812 of ann on GPU 0 for 3 s (python x.py)".
std::string outsider_text(const Outsider& outsider) {
  std::string text = fmt::format("pid {}", outsider.pid);
  if (!outsider.user.empty()) text += fmt::format(" of {}", printable(outsider.user));
  text += fmt::format(" on GPU {} for {}", printable(outsider.device), span_text(outsider.seen_ms));
  if (!outsider.command.empty())
    text += fmt::format(" ({})", cut(printable(outsider.command), kShownCommand));
  return text;
}

std::string outsiders_text(const Receipt& receipt) {
  std::string text;
  for (const Outsider& outsider : receipt.outsiders)
    text += (text.empty() ? "" : ", ") + outsider_text(outsider);
  return text;
}

std::string clean_text(const Receipt& receipt) {
  if (!receipt.clean) return std::string(kUnknown);
  return *receipt.clean ? "yes: nobody else computed, and the clocks were not slowed" : "no";
}

// Of each lease of a library one is made, whether or not its program asks.
Json receipt_json_of(const Receipt& receipt) {
  Json devices = Json::array();
  for (const DeviceReceipt& device : receipt.devices) devices.push_back(device_json_of(device));
  Json outsiders = receipt.sampled_every_ms ? Json(Json::array()) : Json(nullptr);
  for (const Outsider& outsider : receipt.outsiders) outsiders.push_back(outsider_json(outsider));
  return JsonFields(20)
      .add("lease", to_text(receipt.lease))
      .add("job", receipt.job.empty() ? Json(nullptr) : Json(receipt.job))
      .add("program", receipt.program)
      .add("command", receipt.command)
      .add("ended_at_s", receipt.ended_s)
      .add("waited_ms", receipt.waited_ms)
      .add("lasted_ms", receipt.lasted_ms)
      .add("ending", to_text(receipt.ending))
      .add("exit_status", nullable(receipt.exit_status))
      .add("signal", nullable(receipt.signal))
      .add("promised_bytes", receipt.promise_bytes == 0 ? Json(nullptr) : Json(receipt.promise_bytes))
      .add("driver_version", receipt.driver.empty() ? Json(nullptr) : Json(receipt.driver))
      .add("energy_mj", nullable(energy_mj_of(receipt)))
      .add("peak_bytes", nullable(peak_bytes_of(receipt)))
      .add("use_percent", nullable(use_percent_of(receipt)))
      .add("accounted", receipt.is_accounted)
      .add("sampled_every_ms", nullable(receipt.sampled_every_ms))
      .add("clean", nullable(receipt.clean))
      .add("devices", std::move(devices))
      .add("strangers", std::move(outsiders))
      .take();
}

}  // namespace

std::string energy_text(const Reading<std::uint64_t>& energy_mj) {
  if (!energy_mj) return std::string(kUnknown);
  const double hours = static_cast<double>(*energy_mj) / kMillijoulesInWh;
  if (hours >= 10 * kWhInKwh) return fmt::format("{:.0f} kWh", hours / kWhInKwh);
  return fmt::format("{:.{}f} Wh", hours, hours < 10 ? 1 : 0);
}

std::string receipt_sentence(const Receipt& receipt) {
  std::string sentence = fmt::format("ran {} on GPU {}", span_text(receipt.lasted_ms), labels_of(receipt));
  if (receipt.waited_ms >= 1000)
    sentence += fmt::format(", after a wait of {}", span_text(receipt.waited_ms));
  std::string figures;
  const auto add = [&figures](const std::string& figure) {
    figures += (figures.empty() ? "; " : ", ") + figure;
  };
  if (const auto peak = peak_bytes_of(receipt))
    add(fmt::format("peak {}{}", bytes_for_people(*peak), bound_of(receipt)));
  if (const auto use = use_percent_of(receipt)) add(fmt::format("use {}", percent_text(use)));
  if (throttled_percent_of(receipt).value_or(0) > 0)
    add(fmt::format("throttled {}", percent_text(throttled_percent_of(receipt))));
  if (const auto energy = energy_mj_of(receipt)) add(energy_text(energy));
  if (receipt.clean) add(*receipt.clean ? "clean" : "not clean");
  sentence += figures;
  if (!receipt.outsiders.empty())
    sentence += fmt::format("; others computed there too: {}", outsiders_text(receipt));
  return sentence;
}

namespace {

std::string receipt_text(const Receipt& receipt, const Style& style) {
  const auto peak = peak_bytes_of(receipt);
  const std::string peak_text =
      peak ? fmt::format("{}{}", bytes_for_people(*peak), bound_of(receipt)) : std::string(kUnknown);
  const std::string others = receipt.sampled_every_ms ? "none seen" : std::string(kUnknown);
  const std::array<std::pair<std::string_view, std::string>, 13> lines{
      {{"run", receipt.job.empty()
                   ? fmt::format("lease {}", to_text(receipt.lease))
                   : fmt::format("job {} (lease {})", printable(receipt.job), to_text(receipt.lease))},
       {"command", printable(receipt.command)},
       {"ended", fmt::format("{}, {}", clock_time(receipt.ended_s, style), ending_text(receipt))},
       {"waited", span_text(receipt.waited_ms)},
       {"ran", span_text(receipt.lasted_ms)},
       {"GPUs",
        fmt::format(
            "{} ({}{})", labels_of(receipt), models_of(receipt),
            receipt.promise_bytes == 0 ? "" : ", a share of " + bytes_for_people(receipt.promise_bytes))},
       {"memory", peak_text},
       {"use", percent_text(use_percent_of(receipt))},
       {"slowed", percent_text(throttled_percent_of(receipt))},
       {"others", receipt.outsiders.empty() ? others : outsiders_text(receipt)},
       {"clean", clean_text(receipt)},
       {"energy", energy_text(energy_mj_of(receipt))},
       {"driver", receipt.driver.empty() ? std::string(kUnknown) : printable(receipt.driver)}}};
  std::string text;
  for (const auto& [name, value] : lines) text += fmt::format("{:<8}  {}\n", name, value);
  return text;
}

}  // namespace

std::string receipts_text(const std::vector<Receipt>& receipts, std::size_t most, const Style& style) {
  const std::size_t first = receipts.size() > most ? receipts.size() - most : 0;
  std::string text;
  for (std::size_t i = first; i < receipts.size(); ++i)
    text += (text.empty() ? "" : "\n") + receipt_text(receipts[i], style);
  return first == 0 ? text : text + "\n" + program_runs_table(runs_by_program(receipts), style);
}

std::string running_text(std::string_view id, const std::vector<std::string>& words,
                         const TaskStanding& standing, const Style& style) {
  const std::int64_t started_s = standing.started_s.value_or(style.now_s);
  const std::array<std::pair<std::string_view, std::string>, 5> lines{
      {{"run", fmt::format("job {}, which still runs", id)},
       {"command", cut(printable(fmt::format("{}", fmt::join(words, " "))), kRunningCommand)},
       {"started", clock_time(started_s, style)},
       {"ran", duration_for_people(std::max<std::int64_t>(0, style.now_s - started_s)) + " so far"},
       {"GPUs", printable(label_list(standing.devices))}}};
  std::string text;
  for (const auto& [name, value] : lines) text += fmt::format("{:<8}  {}\n", name, value);
  return text + fmt::format("The rest is known when it ends: berth wait {}\n", id);
}

std::string program_runs_table(const std::vector<ProgramRuns>& programs, const Style& style) {
  std::vector<Row> rows;
  for (const ProgramRuns& program : programs)
    rows.push_back({{printable(program.program), Tone::strong},
                    {std::to_string(program.runs)},
                    {std::to_string(program.badly), program.badly == 0 ? Tone::faint : Tone::plain},
                    {span_text(program.median_ms)},
                    {program.peak_bytes ? bytes_for_people(*program.peak_bytes) : std::string(kUnknown)},
                    {energy_text(program.energy_mj)},
                    {clock_time(program.last_s, style)},
                    {cut(printable(program.command), kShownCommand)}});
  return table({{"PROGRAM", Align::left, 12},
                {"RUNS", Align::right},
                {"FAILED", Align::right, 0, 2},
                {"TIME", Align::right},
                {"PEAK", Align::right, 0, 3},
                {"ENERGY", Align::right},
                {"LAST", Align::left, 0, 1},
                {"COMMAND", Align::left, 10}},
               std::move(rows), style);
}

std::string receipts_json(const std::vector<Receipt>& receipts, Layout layout) {
  Json json = {{"kind", "berth-receipt"}, {"version", 1}, {"runs", Json::array()}};
  for (const Receipt& receipt : receipts) json["runs"].push_back(receipt_json_of(receipt));
  return dumped(std::move(json), layout);
}

}  // namespace berth::view
