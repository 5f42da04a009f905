// What another machine answers to a hub.
#include "berth/hub/hub_pages.h"
#include "berth/usage/usage.h"
#include "berth/view/answers_json.h"
#include "berth/view/hosts_reader.h"
#include "berth/view/usage.h"
#include "targets.h"

namespace berth::fuzz {

void read_hosts_document(std::string_view input) {
  Host before;
  before.name = "node01";
  http::Response answer{.status = 200, .type = "application/json", .tag = "", .body = std::string(input)};
  const hub::HostNews news = hub::news_after_asking(before, answer, 1'763'800'000);
  if (!news.host.report) return;
  require(news.host.is_up(), "a host whose answer was read is up");
  require(news.entry.size() <= 2 * input.size() + 4096, "an entry does not grow beyond its source");
  // What we have written of it can be read, and is then written as it was.
  const view::HostsHead head{.number = 1, .time_s = 1, .every_s = 1, .is_hub = false};
  const std::string_view entry = news.entry;
  const Hosts hosts{std::make_shared<const Host>(news.host)};
  const auto again = view::read_hosts(view::hosts_json(head, {&entry, 1}, totals_of(hosts)));
  require(again && again->hosts.size() == 1 && again->hosts.front().report, "what was written can be read");
  Host told = news.host;
  told.report = again->hosts.front().report;
  require(view::host_json(told) == view::host_json(news.host), "what was read is written as it was");
}

void read_usage_document(std::string_view input) {
  if (const auto usage = view::usage_from_json(input)) {
    const std::string written = view::usage_json(*usage, view::Layout::line);
    const auto again = view::usage_from_json(written);
    require(again && view::usage_json(*again, view::Layout::line) == written, "usage is read as written");
    (void)view::usage_table(*usage, {});
  }
  if (const auto history = view::device_history_from_json(input)) {
    const std::string written = view::device_history_json(*history, view::Layout::line);
    require(view::device_history_from_json(written).has_value(), "a history is read as written");
  }
  if (const auto recorded = view::recorded_leases_from_json(input)) {
    const std::string written = view::recorded_leases_json(*recorded, view::Layout::line);
    const auto again = view::recorded_leases_from_json(written);
    require(again && *again == *recorded, "leases are read as written");
    const RecordedWorkload made = recorded_workload(*recorded);
    require(made.workload.jobs.size() == made.recorded.grants.size(), "each job has what became of it");
  }
  (void)view::message_of_error(input);
  for (const std::string_view kind : {"berth-list", "berth-queue", "berth-health"})
    (void)view::rewritten(input, kind, view::Layout::line);
}

}  // namespace berth::fuzz
