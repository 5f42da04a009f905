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

}  // namespace

std::string recorded_leases_json(const RecordedLeases& recorded, Layout layout) {
  Json leases = Json::array();
  for (const RecordedLease& lease : recorded.leases) leases.push_back(recorded_lease_json(lease));
  Json json{{"kind", "berth-past-leases"}, {"version", 1},
            {"from_s", recorded.from_s},   {"to_s", recorded.to_s},
            {"devices", recorded.devices}, {"leases", std::move(leases)}};
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
  return recorded;
}

}  // namespace berth::view
