#include "berth/view/past_leases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "berth/view/json_reader.h"
#include "berth/view/json_value.h"

namespace berth::view {
namespace {

Json wish_json(const RecordedWish& wish) {
  return {{"joined_s", wish.joined_s},
          {"time_s", nullable(wish.time_s)},
          {"whole", wish.whole},
          {"yields", wish.yields}};
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
