#include "berth/agent/publish.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/error.h"
#include "berth/queue/standing.h"
#include "berth/timeline/picture.h"
#include "berth/view/answers_json.h"
#include "berth/view/json.h"
#include "berth/view/refusal.h"

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

namespace {

/// The parts of all hosts, which each answer to a question is made from.
struct Roll {
  Hosts hosts;
};

/// All answers share the parts: nothing is copied, however many clients ask.
http::Page all_hosts(const std::vector<PostedHost>& posted, const view::HostsHead& head,
                     const Totals& totals) {
  static const http::Part kBetween = http::make_part(",");
  auto [start, end] = view::around_hosts(head, totals);
  auto parts = std::make_shared<http::Parts>();
  parts->reserve(2 * posted.size() + 2);
  parts->push_back(http::make_part(std::move(start)));
  for (const PostedHost& each : posted) {
    if (parts->size() > 1) parts->push_back(kBetween);
    parts->push_back(each.entry);
  }
  parts->push_back(http::make_part(std::move(end)));
  http::Page page{200, http::kJson, nullptr};
  page.parts = std::move(parts);
  page.tag = fmt::format("\"n{}\"", head.number);
  return page;
}

http::Page match(const Roll& roll, const http::Parameters& parameters) {
  const auto filter = parameters.find("filter");
  if (filter == parameters.end())
    return http::refusal(
        400, "needs ?filter= and an expression, as in docs/expressions.md: name~A100 and free>=20G");
  const auto expression = Expression::parse(filter->second);
  if (!expression) return http::refusal(400, expression.error().message);
  return http::make_page(200, http::kJson, view::match_json(matching(roll.hosts, *expression)));
}

}  // namespace

PostedHost post(Host host, const http::Part& entry, std::uint64_t number,
                const std::optional<HostChange>& change) {
  static const http::Part kEnd = http::make_part("\n\n");
  static const http::Part kHost = http::make_part("event: host\ndata: ");
  // The second event has no id: a client that goes on from an id must have all that was published
  // before, as it has after a summary.
  PostedHost posted{
      .host = std::make_shared<const Host>(std::move(host)),
      .entry = entry,
      .event = {number, {http::make_part(fmt::format("event: host\nid: {}\ndata: ", number)), entry, kEnd}},
      .change = {number, {kHost, entry, kEnd}},
  };
  if (change) {
    static const http::Part kChange = http::make_part("event: change\ndata: ");
    posted.change.change.emplace(change->since, http::Parts{kChange, change->text, kEnd});
  }
  return posted;
}

void publish_hosts(const std::vector<PostedHost>& posted, const view::HostsHead& head,
                   http::Published& published) {
  auto roll = std::make_shared<Roll>();
  for (const PostedHost& each : posted) roll->hosts.push_back(each.host);
  const Totals totals = totals_of(roll->hosts);

  const http::Part summary =
      http::make_part(fmt::format("event: summary\nid: {}\ndata: {}\n", head.number,
                                  view::hosts_summary_json(head, roll->hosts, totals)));
  std::optional<http::Frame> line;
  if (head.queue_number != 0)
    line = http::Frame{
        head.queue_number,
        {http::make_part(fmt::format("event: line\ndata: {}\n", view::lab_queue_json(head.queue)))}};
  const auto stream = [&](std::string_view path, http::Frame PostedHost::* frame) {
    std::vector<http::Frame> frames;
    frames.reserve(posted.size() + 2);
    for (const PostedHost& each : posted) frames.push_back(each.*frame);
    if (line) frames.push_back(*line);
    std::ranges::sort(frames, {}, &http::Frame::number);
    frames.push_back({head.number, {summary}});
    published.streams[std::string(path)] = std::move(frames);
  };
  stream("/api/v1/hosts/events", &PostedHost::event);
  stream("/api/v1/hosts/changes", &PostedHost::change);

  published.pages["/api/v1/hosts"] = all_hosts(posted, head, totals);
  published.questions["/api/v1/match"] = [roll](const http::Parameters& parameters) {
    return match(*roll, parameters);
  };
}

}  // namespace berth::agent

namespace berth::view {
namespace {

/// "just now", "46 seconds ago", "an hour ago", "7 days ago".
std::string humanized(std::int64_t age_s) {
  if (age_s < 10) return "just now";
  if (age_s < 60) return fmt::format("{} seconds ago", age_s);
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{
      {{"year", 365 * 86'400}, {"month", 30 * 86'400}, {"day", 86'400}, {"hour", 3'600}, {"minute", 60}}};
  const auto* unit = std::ranges::find_if(kUnits, [&](const auto& each) { return each.second <= age_s; });
  const std::int64_t count = age_s / unit->second;
  if (count == 1) return fmt::format("{} {} ago", unit->first == "hour" ? "an" : "a", unit->first);
  return fmt::format("{} {}s ago", count, unit->first);
}

/// "jupyter", the first argument that is a Python file, or the beginning.
std::string rough_command(const std::string& command) {
  constexpr std::size_t kWidth = 25;
  if (command.find("ipykernel") != std::string::npos) return "jupyter";
  for (std::size_t at = 0; at < command.size();) {
    const std::size_t end = std::min(command.find(' ', at), command.size());
    if (std::string_view(command).substr(at, end - at).ends_with(".py")) return command.substr(at, end - at);
    at = end + 1;
  }
  return command.size() <= kWidth ? command : command.substr(0, kWidth) + "...";
}

/// The lessees; "?" has locked it without a ticket.
std::vector<std::string> lessees(const Device& device, const Facts& facts, const LeasesByDevice& leases) {
  std::vector<std::string> users;
  for (const Ticket* lease : leases.on(device.uuid))
    users.push_back(lease->user.empty() ? fmt::format("uid {}", lease->uid) : lease->user);
  const auto is_in = [&](const std::vector<std::string>& locked) {
    return std::ranges::find(locked, device.uuid) != locked.end();
  };
  if (users.empty() && (is_in(facts.foreign_locks) || facts.locked_by_originals.contains(device.uuid)))
    users.emplace_back("?");
  return users;
}

/// A row of nvgpu's: it lists the processes that compute, and "memory in use" includes the driver's
/// reserve.
Json gpu_status(const Device& device, const std::vector<std::string>& lessees, std::int64_t now_s) {
  std::vector<std::string> pids;
  std::vector<std::string> users;
  std::optional<std::int64_t> oldest_s;
  Json command = nullptr;
  for (const Process& process : device.processes.value_or(std::vector<Process>())) {
    if (process.kind == ProcessKind::graphics) continue;
    pids.push_back(std::to_string(process.pid));
    users.push_back(process.user.empty() ? "?" : process.user);
    if (process.started_at_s)
      oldest_s = std::min(oldest_s.value_or(*process.started_at_s), *process.started_at_s);
    if (command.is_null() && !process.command.empty()) command = rough_command(process.command);
  }
  const Memory& memory = device.memory;
  const auto used =
      memory.used_bytes ? Json(*memory.used_bytes + memory.reserved_bytes.value_or(0)) : Json(nullptr);
  return {{"type", device.name},
          {"is_available", pids.empty() && lessees.empty() && device.state == DeviceState::ok},
          {"pids", fmt::format("{}", fmt::join(pids, ","))},
          {"users", fmt::format("{}", fmt::join(users.empty() ? lessees : users, ","))},
          {"running_since", oldest_s ? Json(humanized(now_s - *oldest_s)) : Json(nullptr)},
          {"utilization", nullable(device.utilization_percent)},
          {"memory",
           {{"total", nullable(memory.total_bytes)}, {"free", nullable(memory.free_bytes)}, {"used", used}}},
          {"clock_mhz", nullable(device.sm_clock_mhz)},
          {"temperature", nullable(device.temperature_c)},
          {"cmd", command}};
}

}  // namespace

std::string nvgpu_error(std::string_view message) {
  return dumped({{"error", message}}, Layout::line);
}

std::string nvgpu_report(std::string_view hostname, const Facts& facts, const Ledger& ledger,
                         std::int64_t now_s) {
  Json json{{"hostname", hostname}, {"gpus", Json::array()}};
  const LeasesByDevice leases(ledger);
  for (const Device& device : facts.snapshot.devices) {
    if (!device.mig) json["gpus"].push_back(gpu_status(device, lessees(device, facts, leases), now_s));
  }
  return dumped(std::move(json), Layout::line);
}

}  // namespace berth::view
