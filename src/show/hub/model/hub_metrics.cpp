#include "berth/hub/model/hub_metrics.h"

#include <map>
#include <utility>

#include "berth/view/server_metrics.h"

namespace berth::view {
namespace {

double gauge_of(std::size_t count) {
  return static_cast<double>(count);
}

std::map<Clause, std::size_t> refused_devices(const Host& host) {
  std::map<Clause, std::size_t> counts;
  if (!host.report) return counts;
  for (const Verdict& verdict : host.report->verdicts) {
    if (verdict.failed) ++counts[*verdict.failed];
  }
  return counts;
}

}  // namespace

/// Cards of one name with different memory are one series: Prometheus takes no second one.
std::map<std::string, std::pair<std::size_t, std::size_t>> devices_and_free(const Totals& totals) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  for (const ModelTotal& model : totals.models) {
    auto& [devices, free] = counts[model.name];
    devices += model.devices;
    free += model.free;
  }
  return counts;
}

std::string hub_metrics(const Hosts& hosts, const PollCounts& polls) {
  MetricWriter writer;
  writer.metric("host_up", "gauge", "Whether the host's agent answers the hub, and its driver the agent.");
  for (const auto& host : hosts) writer.sample({{"host", host->name}}, host->is_up() ? 1 : 0);
  writer.metric("host_seen_timestamp_seconds", "gauge", "When the host gave its last good answer.");
  for (const auto& host : hosts) {
    writer.sample({{"host", host->name}},
                  host->seen_s ? std::optional(static_cast<double>(*host->seen_s)) : std::nullopt);
  }
  writer.metric("hub_refused_devices", "gauge",
                "Devices of the host that no request for one whole device could have, by the first condition "
                "that fails.");
  for (const auto& host : hosts) {
    for (const auto& [clause, count] : refused_devices(*host))
      writer.sample({{"host", host->name}, {"clause", std::string(to_text(clause))}}, gauge_of(count));
  }
  writer.metric("hub_passed_over_devices", "gauge",
                "Devices of the host that some user's requests pass over, because this user's runs on them "
                "died and live elsewhere.");
  for (const auto& host : hosts) {
    if (host->report)
      writer.sample({{"host", host->name}}, gauge_of(host->report->facts.passed_over_for.size()));
  }
  const Totals totals = totals_of(hosts);
  writer.metric("hub_devices", "gauge", "Devices of the model on all hosts.");
  const auto models = devices_and_free(totals);
  for (const auto& [name, counts] : models) writer.sample({{"name", name}}, gauge_of(counts.first));
  writer.metric("hub_free_devices", "gauge", "Those of them that a request could have now.");
  for (const auto& [name, counts] : models) writer.sample({{"name", name}}, gauge_of(counts.second));
  writer.metric("hub_user_leased_devices", "gauge", "Devices that the user has leased on all hosts.");
  for (const UserTotal& user : totals.users) writer.sample({{"user", user.user}}, gauge_of(user.devices));
  writer.metric("hub_user_waiters", "gauge",
                "Requests of the user that wait, each on one host or on several.");
  for (const UserTotal& user : totals.users) writer.sample({{"user", user.user}}, gauge_of(user.waiting));
  writer.metric("hub_polls_total", "counter", "Questions to agents, by what came of them.");
  writer.sample({{"outcome", "answered"}}, static_cast<double>(polls.answered));
  writer.sample({{"outcome", "failed"}}, static_cast<double>(polls.failed));
  writer.metric("hub_poll_seconds_total", "counter", "What these questions took, one after another.");
  writer.sample({}, polls.seconds);
  return writer.take();
}

}  // namespace berth::view
