#include "berth/agent/publish.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "berth/agent/hosts_pages.h"
#include "berth/agent/nvgpu_report.h"
#include "berth/base/version.h"
#include "berth/queue/listing_bounds.h"
#include "berth/queue/standing.h"
#include "berth/timeline/picture.h"
#include "berth/view/listing_json.h"
#include "berth/view/waiting.h"

namespace berth::agent {
namespace {

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::string_view kPrometheus = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::initializer_list<const char*> kMachinePaths{"/api/v1/snapshot", "/api/v1/leases",
                                                           "/api/v1/queue", "/gpu_status"};

/// Each JSON line is an event of its own, so that a client takes only those that it shows.
void add_event(std::string& frame, std::string_view name, std::uint64_t number, std::string_view json_line) {
  frame += fmt::format("event: {}\nid: {}\ndata: {}\n", name, number, json_line);
}

/// The pages that need no machine.
http::Published start(const PublishContext& context, const Snapshot* snapshot, const Error* error,
                      std::uint64_t number) {
  http::Published published;
  published.number = number;
  published.pages["/healthz"] = http::make_page(200, kPlain, "ok\n");
  const bool ready = snapshot != nullptr && !snapshot->stale_reason;
  published.pages["/readyz"] =
      http::make_page(ready ? 200 : 503, kPlain, ready ? "ready\n" : "the driver does not answer\n");
  published.pages["/api/v1/health"] = http::make_page(
      200, http::kJson,
      view::health_json({version(), context.hostname, snapshot, error, context.warnings, context.history}));
  return published;
}

/// This machine as a hub shows its machines, so that whoever reads a hub can read an agent too.
void publish_as_host(Host host, std::string_view entry, const PublishContext& context,
                     http::Published& published) {
  const std::uint64_t number = published.number;
  publish_hosts({post(std::move(host), http::make_part(std::string(entry)), number - 1)},
                {.number = number, .time_s = context.now_s, .every_s = context.every_s}, published);
}

/// Made when somebody asks: nobody else needs it.
void publish_timeline(const std::shared_ptr<const HostReport>& report, const PublishContext& context,
                      http::Published& published) {
  const auto answer = [report, past = context.past, now_s = context.now_s](const http::Parameters&) {
    return http::make_page(
        200, http::kJson,
        timeline::to_json(timeline_of(*report, past.get(), {.now_s = now_s}), view::Layout::line));
  };
  published.questions["/api/v1/timeline"] = answer;
  published.questions[fmt::format("/api/v1/hosts/{}/timeline", context.hostname)] = answer;
}

http::Published publish_failure(const Error& error, const PublishContext& context, std::uint64_t number) {
  http::Published published = start(context, nullptr, &error, number);
  const std::string text = view::error_json(error);
  const int status = outcome_of(error.code).http_status;
  for (const char* path : kMachinePaths) published.pages[path] = http::make_page(status, http::kJson, text);
  // nvgpu's master shows such a host with the error in its row.
  published.pages["/cluster_status"] =
      http::make_page(200, http::kJson, "[" + view::nvgpu_error(error.message) + "]\n");
  published.pages["/metrics"] = http::make_page(
      200, kPrometheus,
      view::prometheus_text({nullptr, {}, context.counts, version(), context.now_s, context.history}));
  std::string frame;
  add_event(frame, "failure", number, text);
  published.streams["/api/v1/events"] = {{number, {http::make_part(std::move(frame))}}};
  const Host host{.name = context.hostname, .error = error.message};
  publish_as_host(host, view::host_json(host), context, published);
  return published;
}

}  // namespace

http::Published publish(const Result<leasing::World>& look, const PublishContext& context,
                        std::uint64_t number) {
  if (!look) return publish_failure(look.error(), context, number);
  const Facts& facts = look->facts;
  const auto verdicts = leasing::judge_each_in_queue(*look);
  if (!verdicts) return publish_failure(verdicts.error(), context, number);

  const Ledger ledger = listed_part(look->ledger);
  const view::Listing listing{facts, ledger, *verdicts, look->assumed, context.idle};
  const view::Style style{.now_s = context.now_s, .utc_offset_s = context.utc_offset_s};
  auto waiting = listed_standings(look->ledger, ledger, facts, look->stopped, look->looked_at);
  for (Standing& each : waiting) each.reason = view::reason(each, facts.snapshot, style);
  const auto line = view::Layout::line;
  const std::string snapshot = view::listing_json(listing, line);
  const std::string queue = view::queue_json(waiting, ledger.unlisted, line);
  const std::string report = view::nvgpu_report(context.hostname, facts, ledger, context.now_s);

  http::Published published = start(context, &facts.snapshot, nullptr, number);
  std::string frame;
  add_event(frame, "snapshot", number, snapshot);
  add_event(frame, "queue", number, queue);
  published.streams["/api/v1/events"] = {{number, {http::make_part(std::move(frame))}}};
  published.pages["/cluster_status"] = http::make_page(200, http::kJson, "[" + report + "]\n");
  published.pages["/gpu_status"] = http::make_page(200, http::kJson, report);
  published.pages["/api/v1/snapshot"] = http::make_page(200, http::kJson, snapshot);
  published.pages["/api/v1/queue"] = http::make_page(200, http::kJson, queue);
  published.pages["/api/v1/leases"] =
      http::make_page(200, http::kJson, view::leases_json(ledger, facts.booted_at_s, line));
  published.pages["/metrics"] = http::make_page(
      200, kPrometheus,
      view::prometheus_text({&listing, waiting, context.counts, version(), context.now_s, context.history}));
  const Host host{context.hostname, std::nullopt, "", context.now_s,
                  std::make_shared<const HostReport>(
                      HostReport{facts, ledger, *verdicts, look->assumed, context.idle, std::move(waiting)})};
  publish_timeline(host.report, context, published);
  publish_as_host(host, view::host_json(host, snapshot, queue), context, published);
  return published;
}

void LeaseCounter::see(const Ledger& ledger) {
  std::set<TicketId> live;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    live.insert(ticket.id);
    if (first_ || live_.contains(ticket.id)) continue;
    const auto waited_s = static_cast<double>(std::max<std::int64_t>(0, ticket.since_s - ticket.joined_s));
    ++counts_.granted;
    counts_.waited_s += waited_s;
    for (std::size_t i = 0; i < counts_.waited_at_most.size(); ++i) {
      if (waited_s <= view::LeaseCounts::kWaitBounds[i]) ++counts_.waited_at_most[i];
    }
  }
  for (const TicketId id : live_) counts_.ended += live.contains(id) ? 0 : 1;
  live_ = std::move(live);
  first_ = false;
}

}  // namespace berth::agent
