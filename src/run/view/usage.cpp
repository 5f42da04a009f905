#include "berth/view/usage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/record_fields.h"
#include "berth/view/json.h"
#include "berth/view/text.h"

namespace berth::view {
namespace {

/// Of a row of a history.
constexpr std::array<std::string_view, 6> kHistoryColumns{
    "time_s", "utilization_percent", "memory_used_mib", "temperature_c", "power_w", "leased"};

constexpr std::int64_t kWorthTelling = 60;  // seconds that nobody looked: less is a restart

/// To a third of a second, so that sums of doubles do not show as such.
double four_places(double hours) {
  return static_cast<double>(static_cast<std::int64_t>(hours * 10'000 + 0.5)) / 10'000;
}

Json usage_row_json(const UsageRow& row, UsageBy by) {
  Json json;
  if (by != UsageBy::device) {
    json["user"] = row.who;
    if (by == UsageBy::job) json["job"] = row.job.empty() ? Json(nullptr) : Json(row.job);
    if (!row.host.empty()) json["host"] = row.host;
  } else {
    json["device"] = row.who;
    json["gpu"] = row.gpu.empty() ? Json(nullptr) : Json(row.gpu);
    json["name"] = row.name.empty() ? Json(nullptr) : Json(row.name);
    json["host"] = row.host.empty() ? Json(nullptr) : Json(row.host);
  }
  json["leases"] = row.leases;
  json["leased_gpu_hours"] = four_places(row.leased_gpu_hours);
  json["used_gpu_hours"] = four_places(row.used_gpu_hours);
  return json;
}

/// So that sums of what many tell stay numbers.
double hours_in(const JsonReader& row, std::string_view key) {
  constexpr double kMostHours = 1e9;
  const double hours = row.maybe_decimal(key).value_or(0);
  if (!(hours >= 0 && hours <= kMostHours)) row.mark(key, "is no number of hours");
  return hours;
}

UsageRow usage_row_from(const JsonReader& row, UsageBy by) {
  UsageRow read;
  read.who = row.text(by == UsageBy::device ? "device" : "user");
  if (by == UsageBy::job) read.job = row.text("job");
  if (by == UsageBy::device) {
    read.gpu = row.text("gpu");
    read.name = row.text("name");
  }
  read.host = row.text("host");
  read.leases = row.number<std::uint32_t>("leases");
  read.leased_gpu_hours = hours_in(row, "leased_gpu_hours");
  read.used_gpu_hours = hours_in(row, "used_gpu_hours");
  return read;
}

std::string hours_text(double hours) {
  return fmt::format("{:.{}f} h", hours, hours < 1 ? 2 : 1);
}

std::string share_text(const UsageRow& row) {
  if (row.leased_gpu_hours < 0.0001) return std::string(kUnknown);
  return fmt::format("{:.0f}", 100 * row.used_gpu_hours / row.leased_gpu_hours);
}

Cell usage_cell(std::string_view text) {
  return {text.empty() ? std::string(kUnknown) : printable(text)};
}

std::string sums_of(const Usage& usage) {
  double leased = 0;
  double used = 0;
  for (const UsageRow& row : usage.rows) {
    leased += row.leased_gpu_hours;
    used += row.used_gpu_hours;
  }
  return fmt::format("{} leased on all GPUs{}, {} of it used", hours_text(leased),
                     usage.by == UsageBy::job ? " for jobs" : "", hours_text(used));
}

Row usage_cells(const UsageRow& each, UsageBy by, bool several_hosts) {
  Row row;
  if (several_hosts) row.push_back(usage_cell(each.host));
  if (by == UsageBy::job) row.push_back(usage_cell(each.job));
  if (by == UsageBy::device) {
    row.push_back(usage_cell(each.gpu));
    row.push_back(usage_cell(each.name));
  }
  row.push_back(usage_cell(each.who));
  row.push_back({std::to_string(each.leases)});
  row.push_back({hours_text(each.leased_gpu_hours)});
  row.push_back({hours_text(each.used_gpu_hours)});
  row.push_back({share_text(each)});
  return row;
}

std::string what_it_is_about(const Usage& usage, const Style& style) {
  return fmt::format("from {} to {}: {}\n", clock_time(usage.from_s, style), clock_time(usage.to_s, style),
                     usage.rows.empty()
                         ? (usage.by == UsageBy::job ? "nothing was leased for jobs" : "nothing was leased")
                         : sums_of(usage));
}

/// The subject of the table, and what is missing in it.
std::string notes_on(const Usage& usage, const Style& style) {
  std::string text = usage.to_s == 0 ? fmt::format("{}\n", kNoHostTells) : what_it_is_about(usage, style);
  text += unwatched_text(usage);
  for (const std::string& host : usage.missing) text += fmt::format("{} is not in it\n", printable(host));
  return text;
}

}  // namespace

std::string usage_json(const Usage& usage, Layout layout) {
  Json rows = Json::array();
  for (const UsageRow& row : usage.rows) rows.push_back(usage_row_json(row, usage.by));
  Json json{{"kind", "berth-usage"},    {"version", 1},
            {"from_s", usage.from_s},   {"to_s", usage.to_s},
            {"by", to_text(usage.by)},  {"complete", usage.missing.empty()},
            {"missing", usage.missing}, {"unwatched_s", usage.unwatched_s},
            {"rows", std::move(rows)}};
  return dumped(std::move(json), layout);
}

Result<Usage> usage_from_json(std::string_view text) {
  const Json json = json_from(text);
  std::string fault;
  const JsonReader document(json, fault, "usage");
  if (document.text("kind") != "berth-usage")
    return fail(ErrorCode::failure, "what came is not a document of Berth's about usage");
  if (document.number<int>("version") != 1)
    return fail(ErrorCode::failure, "what came is of another version: use the same Berth on both sides");
  Usage usage;
  usage.by = document.word<UsageBy>("by").value_or(UsageBy::user);
  usage.from_s = document.time("from_s");
  usage.to_s = document.time("to_s");
  usage.unwatched_s = document.time("unwatched_s");
  usage.missing = document.texts("missing");
  document.each("rows", [&](const JsonReader& row) { usage.rows.push_back(usage_row_from(row, usage.by)); });
  if (!fault.empty()) return fail(ErrorCode::failure, fault);
  return usage;
}

std::string unwatched_text(const Usage& usage) {
  if (usage.unwatched_s < kWorthTelling) return {};
  return fmt::format(
      "Nobody looked for {} of it: what was used then is not known, and leases that\nbegan and ended then "
      "are not counted.\n",
      duration_for_people(usage.unwatched_s));
}

std::string usage_table(const Usage& usage, const Style& style) {
  const bool by_device = usage.by == UsageBy::device;
  const bool several_hosts =
      std::ranges::any_of(usage.rows, [](const UsageRow& row) { return !row.host.empty(); });
  std::vector<Column> columns;
  if (several_hosts) columns.push_back({"HOST", Align::left, 8});
  if (usage.by == UsageBy::job) columns.push_back({"JOB", Align::left, 12});
  if (!by_device) columns.push_back({"USER", Align::left, 8});
  if (by_device) {
    columns.push_back({"GPU", Align::right});
    columns.push_back({"NAME", Align::left, 12});
    columns.push_back({"UUID", Align::left, 12, 1});
  }
  for (const std::string_view title : {"LEASES", "LEASED", "USED", "%"})
    columns.push_back({title, Align::right});
  std::vector<Row> rows;
  for (const UsageRow& each : usage.rows) rows.push_back(usage_cells(each, usage.by, several_hosts));
  std::string text = rows.empty() ? std::string() : table(columns, rows, style);
  return text + notes_on(usage, style);
}

std::string device_history_json(const DeviceHistory& history, Layout layout) {
  Json rows = Json::array();
  for (const HistoryRow& row : history.rows) {
    const Sample& sample = row.sample;
    const Json leased = sample.leased_percent ? Json(*sample.leased_percent / 100.0) : Json(nullptr);
    rows.push_back(
        Json::array({row.time_s, nullable(sample.utilization_percent), nullable(sample.memory_used_mib),
                     nullable(sample.temperature_c), nullable(sample.power_w), leased}));
  }
  Json leases = Json::array();
  for (const PastLease& lease : history.leases) {
    leases.push_back({{"id", to_text(lease.id)},
                      {"user", lease.user},
                      {"begun_s", lease.begun_s},
                      {"ended_s", nullable(lease.ended_s)},
                      {"end_seen", lease.end_seen}});
  }
  Json json{{"kind", "berth-history"},    {"version", 1},
            {"device", history.uuid},     {"from_s", history.from_s},
            {"to_s", history.to_s},       {"step_s", history.step_s},
            {"columns", kHistoryColumns}, {"rows", std::move(rows)},
            {"leases", std::move(leases)}};
  return dumped(std::move(json), layout);
}

namespace {

constexpr std::size_t kMostHistoryRows = 4096;  // ours have 2,000

/// A value of another kind is not known.
Reading<int> whole_in(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  return std::in_range<int>(number) ? Reading<int>(static_cast<int>(number)) : std::nullopt;
}

Reading<int> percent_of(const Json& share) {
  if (!share.is_number()) return std::nullopt;
  const auto part = share.get<double>();
  return part >= 0 && part <= 1 ? Reading<int>(static_cast<int>(std::lround(part * 100))) : std::nullopt;
}

/// False: the rows are not such as ours.
bool read_rows(const Json& rows, DeviceHistory& history) {
  if (!rows.is_array() || rows.size() > kMostHistoryRows) return false;
  std::int64_t before = -1;
  for (const Json& row : rows) {
    if (!row.is_array() || row.size() != kHistoryColumns.size() || !row[0].is_number_integer()) return false;
    const auto time_s = row[0].get<std::int64_t>();
    if (time_s <= before || time_s >= kLatestSeconds) return false;
    before = time_s;
    history.rows.push_back(
        {time_s,
         {whole_in(row[1]), whole_in(row[2]), whole_in(row[3]), whole_in(row[4]), percent_of(row[5])}});
  }
  return true;
}

PastLease past_lease_from(const JsonReader& json) {
  json.needs("begun_s");
  PastLease lease;
  lease.id = json.word<TicketId>("id").value_or(TicketId{});
  lease.user = json.text("user");
  lease.begun_s = json.time("begun_s");
  lease.ended_s = json.maybe_time("ended_s");
  lease.end_seen = json.flag("end_seen");
  return lease;
}

}  // namespace

Result<DeviceHistory> device_history_from_json(std::string_view text) {
  const Json json = json_from(text);
  std::string fault;
  const JsonReader document(json, fault, "history");
  if (document.text("kind") != "berth-history" || document.number<int>("version") != 1)
    return fail(ErrorCode::failure, "what came is not a document of this Berth's about a device");
  DeviceHistory history;
  history.uuid = document.text("device");
  history.from_s = document.time("from_s");
  history.to_s = document.time("to_s");
  history.step_s = document.time("step_s");
  if (history.from_s >= history.to_s || history.step_s < 1)
    document.mark("step_s", "and times make no sense");
  const std::vector<std::string> columns = document.texts("columns");
  if (!std::ranges::equal(columns, kHistoryColumns)) document.mark("columns", "are others than ours");
  if (fault.empty() && !read_rows(json.value("rows", Json()), history))
    document.mark("rows", "are not such as ours");
  document.each("leases", [&](const JsonReader& each) { history.leases.push_back(past_lease_from(each)); });
  if (!fault.empty()) return fail(ErrorCode::failure, fault);
  return history;
}

namespace {

Json wish_json(const RecordedWish& wish) {
  return {{"joined_s", wish.joined_s},
          {"time_s", nullable(wish.time_s)},
          {"whole", wish.whole},
          {"yields", wish.yields},
          {"command", nullable(wish.command)}};
}

Json recorded_lease_json(const RecordedLease& lease) {
  Json used = Json::array();
  for (const auto& [place, figures] : lease.figures)
    used.push_back(
        {{"on", place}, {"energy_mj", nullable(figures.energy_mj)}, {"clean", nullable(figures.clean)}});
  return {{"id", to_text(lease.id)},  {"user", lease.user},
          {"begun_s", lease.begun_s}, {"ended_s", nullable(lease.ended_s)},
          {"on", lease.devices},      {"request", lease.wish ? wish_json(*lease.wish) : Json(nullptr)},
          {"used", std::move(used)}};
}

RecordedWish wish_from(const JsonReader& document) {
  RecordedWish wish{.joined_s = document.time("joined_s"),
                    .time_s = document.maybe_time("time_s"),
                    .whole = document.maybe_flag("whole").value_or(true),
                    .yields = document.flag("yields")};
  if (const auto command = document.reading<std::uint64_t>("command")) wish.command = *command;
  if (wish.time_s && *wish.time_s < 1) document.mark("time_s", "must be at least 1");
  return wish;
}

RecordedLease recorded_lease_from(const JsonReader& document, std::size_t devices) {
  RecordedLease lease;
  const auto id = ticket_id_from_text(document.text("id"));
  if (!id) document.mark("id", "is no id of a ticket");
  lease.id = id.value_or(TicketId());
  lease.user = document.text("user");
  lease.begun_s = document.time("begun_s");
  lease.ended_s = document.maybe_time("ended_s");
  lease.devices = document.numbers<std::size_t>("on");
  std::ranges::sort(lease.devices);
  const bool twice = std::ranges::adjacent_find(lease.devices) != lease.devices.end();
  if (twice || (!lease.devices.empty() && lease.devices.back() >= devices))
    document.mark("on", "must be places in the list of devices, each once");
  if (const auto wish = document.maybe_object("request")) lease.wish = wish_from(*wish);
  document.each("used", [&lease](const JsonReader& used) {
    const auto place = used.reading<std::size_t>("on");
    if (place && std::ranges::binary_search(lease.devices, *place))
      lease.figures[*place] = {used.reading<std::uint64_t>("energy_mj"), used.reading_flag("clean")};
  });
  return lease;
}

constexpr std::uint64_t kMostLoad = 100;
constexpr std::uint64_t kMostMemoryMib = std::uint64_t{1} << 30U;

Json readings_json(const std::vector<std::vector<Reading<int>>>& readings) {
  Json rows = Json::array();
  for (const auto& of_device : readings) {
    Json row = Json::array();
    for (const Reading<int>& value : of_device) row.push_back(nullable(value));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// A list for each device; none if they were not asked for, or are not such as ours.
std::vector<std::vector<Reading<int>>> readings_from(const Json& readings, std::size_t devices,
                                                     std::uint64_t most) {
  std::vector<std::vector<Reading<int>>> found;
  if (!readings.is_array() || readings.size() != devices) return found;
  for (const Json& of_device : readings) {
    if (!of_device.is_array() || of_device.size() > JsonReader::kLongestList) return {};
    auto& row = found.emplace_back();
    for (const Json& value : of_device) {
      const bool is_known = value.is_number_unsigned() && value.get<std::uint64_t>() <= most;
      row.push_back(is_known ? Reading<int>(value.get<int>()) : Reading<int>());
    }
  }
  return found;
}

}  // namespace

std::string recorded_leases_json(const RecordedLeases& recorded, Layout layout) {
  Json leases = Json::array();
  for (const RecordedLease& lease : recorded.leases) leases.push_back(recorded_lease_json(lease));
  Json json{{"kind", "berth-past-leases"}, {"version", 1},
            {"from_s", recorded.from_s},   {"to_s", recorded.to_s},
            {"devices", recorded.devices}, {"leases", std::move(leases)}};
  if (recorded.is_cut) json["cut"] = true;
  // Only where they were asked for: a Berth that does not know them asks for none.
  if (recorded.step_s > 0) {
    json["step_s"] = recorded.step_s;
    json["loads"] = readings_json(recorded.loads);
    json["memories"] = readings_json(recorded.memories);
  }
  return dumped(std::move(json), layout);
}

Result<RecordedLeases> recorded_leases_from_json(std::string_view text) {
  const Json json = json_from(text);
  std::string fault;
  const JsonReader document(json, fault, "past leases");
  if (document.text("kind") != "berth-past-leases")
    return fail(ErrorCode::failure, "what came is not a document of Berth's about leases");
  if (document.number<int>("version") != 1)
    return fail(ErrorCode::failure, "what came is of another version: use the same Berth on both sides");
  RecordedLeases recorded;
  recorded.from_s = document.time("from_s");
  recorded.to_s = document.time("to_s");
  recorded.is_cut = document.maybe_flag("cut").value_or(false);
  recorded.devices = document.texts("devices");
  document.each("leases", [&](const JsonReader& lease) {
    recorded.leases.push_back(recorded_lease_from(lease, recorded.devices.size()));
  });
  if (!fault.empty()) return fail(ErrorCode::failure, fault);
  recorded.loads = readings_from(json.value("loads", Json()), recorded.devices.size(), kMostLoad);
  recorded.memories = readings_from(json.value("memories", Json()), recorded.devices.size(), kMostMemoryMib);
  if (!recorded.loads.empty())
    recorded.step_s = std::max<std::int64_t>(0, document.number<std::int64_t>("step_s"));
  return recorded;
}

}  // namespace berth::view
