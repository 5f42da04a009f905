#include "berth/render/hub_metrics.h"

#include "berth/render/metric_writer.h"

namespace berth::render {
namespace {

double gauge_of(std::size_t count) {
  return static_cast<double>(count);
}

}  // namespace

std::string hub_metrics(const Hosts& hosts) {
  MetricWriter writer;
  writer.metric("host_up", "gauge", "Whether the host's agent answers the hub, and its driver the agent.");
  for (const auto& host : hosts) writer.sample({{"host", host->name}}, host->is_up() ? 1 : 0);
  writer.metric("host_seen_timestamp_seconds", "gauge", "When the host gave its last good answer.");
  for (const auto& host : hosts) {
    writer.sample({{"host", host->name}},
                  host->seen_s ? std::optional(static_cast<double>(*host->seen_s)) : std::nullopt);
  }
  const Totals totals = totals_of(hosts);
  writer.metric("hub_devices", "gauge", "Devices of the model on all hosts.");
  for (const ModelTotal& model : totals.models)
    writer.sample({{"name", model.name}}, gauge_of(model.devices));
  writer.metric("hub_free_devices", "gauge", "Those of them that a request could have now.");
  for (const ModelTotal& model : totals.models) writer.sample({{"name", model.name}}, gauge_of(model.free));
  writer.metric("hub_user_leased_devices", "gauge", "Devices that the user has leased on all hosts.");
  for (const UserTotal& user : totals.users) writer.sample({{"user", user.user}}, gauge_of(user.devices));
  writer.metric("hub_user_waiters", "gauge", "Requests of the user that wait on all hosts.");
  for (const UserTotal& user : totals.users) writer.sample({{"user", user.user}}, gauge_of(user.waiting));
  return writer.take();
}

}  // namespace berth::render
