#include "berth/view/recorded.h"

#include <fmt/format.h>

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
  return {{"id", to_text(lease.id)},  {"user", lease.user},
          {"begun_s", lease.begun_s}, {"ended_s", nullable(lease.ended_s)},
          {"on", lease.devices},      {"request", lease.wish ? wish_json(*lease.wish) : Json(nullptr)}};
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
  return lease;
}

/// A list for each device; none if they were not asked for, or are not such as ours.
std::vector<std::vector<Reading<int>>> loads_from(const Json& loads, std::size_t devices) {
  std::vector<std::vector<Reading<int>>> found;
  if (!loads.is_array() || loads.size() != devices) return found;
  for (const Json& of_device : loads) {
    if (!of_device.is_array() || of_device.size() > JsonReader::kLongestList) return {};
    auto& row = found.emplace_back();
    for (const Json& load : of_device) {
      const bool is_load = load.is_number_unsigned() && load.get<std::uint64_t>() <= 100;
      row.push_back(is_load ? Reading<int>(load.get<int>()) : Reading<int>());
    }
  }
  return found;
}

}  // namespace

std::string recorded_leases_json(const RecordedLeases& recorded, Layout layout) {
  Json leases = Json::array();
  for (const RecordedLease& lease : recorded.leases) leases.push_back(recorded_lease_json(lease));
  Json loads = Json::array();
  for (const auto& of_device : recorded.loads) {
    Json row = Json::array();
    for (const Reading<int>& load : of_device) row.push_back(nullable(load));
    loads.push_back(std::move(row));
  }
  Json json{{"kind", "berth-past-leases"}, {"version", 1},
            {"from_s", recorded.from_s},   {"to_s", recorded.to_s},
            {"devices", recorded.devices}, {"leases", std::move(leases)}};
  // Only where they were asked for: a Berth that does not know them asks for none.
  if (recorded.step_s > 0) {
    json["step_s"] = recorded.step_s;
    json["loads"] = std::move(loads);
  }
  return dumped(std::move(json), layout);
}

Result<RecordedLeases> recorded_leases_from_json(std::string_view text) {
  constexpr std::size_t kDeepest = 8;
  const Json json = shape_of(text).levels > kDeepest ? Json() : Json::parse(text, nullptr, false);
  std::string fault;
  const JsonReader document(json, fault, "past leases");
  if (document.text("kind") != "berth-past-leases")
    return fail(ErrorCode::failure, "what came is not a document of Berth's about leases");
  if (document.number<int>("version") != 1)
    return fail(ErrorCode::failure, "what came is of another version: use the same Berth on both sides");
  RecordedLeases recorded;
  recorded.from_s = document.time("from_s");
  recorded.to_s = document.time("to_s");
  recorded.devices = document.texts("devices");
  document.each("leases", [&](const JsonReader& lease) {
    recorded.leases.push_back(recorded_lease_from(lease, recorded.devices.size()));
  });
  if (!fault.empty()) return fail(ErrorCode::failure, fault);
  recorded.loads = loads_from(json.value("loads", Json()), recorded.devices.size());
  if (!recorded.loads.empty())
    recorded.step_s = std::max<std::int64_t>(0, document.number<std::int64_t>("step_s"));
  return recorded;
}

}  // namespace berth::view
