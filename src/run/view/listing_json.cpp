#include "berth/view/listing_json.h"

#include <array>

#include "berth/base/text_match.h"
#include "berth/queue/expected_run_time.h"
#include "berth/queue/standing.h"
#include "berth/view/json_parts.h"
#include "berth/view/json_value.h"
#include "berth/view/verdict_text.h"
#include "berth/view/version_text.h"

namespace berth::view {
std::string listing_json(const Listing& listing, Layout layout) {
  const Snapshot& snapshot = listing.facts.snapshot;
  Json json = started("berth-list");
  json["taken_at_s"] = taken_at(snapshot);
  json["source"] = text_or_null(snapshot.source);
  json["driver_version"] = text_or_null(snapshot.driver_version);
  json["cuda_version"] =
      snapshot.cuda_version ? Json(version_text(*snapshot.cuda_version, kCuda)) : Json(nullptr);
  json["stale_reason"] = nullable(snapshot.stale_reason);
  json["inside_lease"] = listing.facts.within.has_value() || listing.own.has_value();
  json["own_lease"] = listing.own ? Json(to_text(*listing.own)) : Json(nullptr);
  json["notes"] = snapshot.notes;
  const HostFacts* host = known_host(listing.facts);
  json["host"] = host != nullptr ? text_or_null(host->name) : Json(nullptr);
  json["labels"] = host != nullptr ? Json(host->labels) : Json(nullptr);
  json["devices"] = Json::array();
  const LeasesByDevice leases(listing.ledger);
  for (const Device& device : snapshot.devices) {
    const Verdict* verdict = verdict_on(device, listing.verdicts, listing.facts.snapshot);
    json["devices"].push_back(device_json(device, verdict, listing, leases));
  }
  json["leases"] = leases_of(listing.ledger, listing.facts.booted_at_s);
  json["waiting"] = count_waiting(listing.ledger);
  json["odd_tickets"] = Json::array();
  for (const OddTicket& odd : listing.ledger.odd) {
    json["odd_tickets"].push_back({{"name", odd.name}, {"uid", odd.uid}, {"reason", odd.reason}});
  }
  json["unlisted"] = unlisted_json(listing.ledger.unlisted,
                                   {{"leases", &Unlisted::leases}, {"odd_tickets", &Unlisted::odd}});
  return dumped(std::move(json), layout);
}

std::string queue_json(const std::vector<Standing>& waiters, const std::vector<Unlisted>& unlisted,
                       Layout layout) {
  Json json = started("berth-queue");
  json["waiters"] = Json::array();
  for (const Standing& waiter : waiters) {
    Json row{{"position", waiter.position}};
    row.update(ticket_json(waiter.ticket, 0));
    row.erase("phase");
    row.erase("until_s");
    row.erase("ending");
    row.erase("devices");
    row["candidates"] = waiter.ticket.candidates;
    row["behind"] = waiter.behind ? Json(to_text(waiter.behind->id)) : Json(nullptr);
    row["starts_at_s"] = nullable(waiter.starts_at_s);
    row["starts_on"] = waiter.starts_on;
    row["stopped"] = waiter.stopped;
    row["held_back"] = waiter.ticket.held_back;
    row["fills_gap_until_s"] = nullable(waiter.fills_gap_until_s);
    row["reason"] = waiter.reason;
    if (waiter.ticket.expected_s) {
      row["expected_s"] = *waiter.ticket.expected_s;
      row["expected_by"] = to_text(expected_by(waiter.ticket));
    }
    json["waiters"].push_back(std::move(row));
  }
  json["unlisted"] = unlisted_json(unlisted, {{"waiting", &Unlisted::waiting}});
  return dumped(std::move(json), layout);
}

std::string leases_json(const Ledger& ledger, std::int64_t booted_at_s, Layout layout) {
  Json json = started("berth-leases");
  json["leases"] = leases_of(ledger, booted_at_s);
  json["unlisted"] = unlisted_json(ledger.unlisted, {{"leases", &Unlisted::leases}});
  return dumped(std::move(json), layout);
}

}  // namespace berth::view
