// What another machine answers to a hub.
#include "berth/history/model/recorded.h"
#include "berth/hub/hub_pages.h"
#include "berth/view/host_report.h"
#include "berth/view/hosts_json.h"
#include "berth/view/recorded.h"
#include "berth/view/usage.h"
#include "targets.h"

namespace berth::fuzz {

void read_hosts_document(std::string_view input) {
  Host before;
  before.name = "node01";
  serve::Response answer{.status = 200, .type = "application/json", .tag = "", .body = std::string(input)};
  const serve::HostNews news = serve::news_after_asking(before, answer, 1'763'800'000);
  if (!news.host.report) return;
  require(news.host.is_up(), "a host whose answer was read is up");
  require(news.entry.size() <= 2 * input.size() + 4096, "an entry does not grow beyond its source");
  // What we have written of it can be read, and is then written as it was.
  const render::HostsHead head{.number = 1, .time_s = 1, .every_s = 1, .is_hub = false};
  const std::string_view entry = news.entry;
  const Hosts hosts{std::make_shared<const Host>(news.host)};
  const auto again = render::read_hosts(render::hosts_json(head, {&entry, 1}, totals_of(hosts)));
  require(again && again->hosts.size() == 1 && again->hosts.front().report, "what was written can be read");
  Host told = news.host;
  told.report = again->hosts.front().report;
  require(render::host_json(told) == render::host_json(news.host), "what was read is written as it was");
}

void read_usage_document(std::string_view input) {
  if (const auto usage = render::usage_from_json(input)) {
    const std::string written = render::usage_json(*usage, render::Layout::line);
    const auto again = render::usage_from_json(written);
    require(again && render::usage_json(*again, render::Layout::line) == written, "usage is read as written");
    (void)render::usage_table(*usage, {});
  }
  if (const auto history = render::device_history_from_json(input)) {
    const std::string written = render::device_history_json(*history, render::Layout::line);
    require(render::device_history_from_json(written).has_value(), "a history is read as written");
  }
  if (const auto recorded = render::recorded_leases_from_json(input)) {
    const std::string written = render::recorded_leases_json(*recorded, render::Layout::line);
    const auto again = render::recorded_leases_from_json(written);
    require(again && *again == *recorded, "leases are read as written");
    const RecordedWorkload made = recorded_workload(*recorded);
    require(made.workload.jobs.size() == made.recorded.grants.size(), "each job has what became of it");
  }
  (void)render::message_of_error(input);
  for (const std::string_view kind : {"berth-list", "berth-queue", "berth-health"})
    (void)render::rewritten(input, kind, render::Layout::line);
}

}  // namespace berth::fuzz
