#include "berth/view/server_metrics.h"

#include "berth/view/metric_writer.h"

namespace berth::view {

std::string server_metrics(const ServerCounts& counts) {
  MetricWriter writer;
  writer.metric("serve_connections", "gauge", "Connections that are open.");
  writer.sample({{"at", "network"}}, static_cast<double>(counts.network));
  writer.sample({{"at", "socket"}}, static_cast<double>(counts.local));
  writer.metric("serve_connections_refused_total", "counter", "Connections that there was no room for.");
  writer.sample({}, static_cast<double>(counts.refused));
  writer.metric("serve_connections_shown_out_total", "counter",
                "Connections that asked for nothing and had to make room.");
  writer.sample({}, static_cast<double>(counts.evicted));
  writer.metric("serve_answers_total", "counter",
                "Answers by their HTTP status; event streams are not among them.");
  for (const auto& [status, count] : counts.answers)
    writer.sample({{"status", std::to_string(status)}}, static_cast<double>(count));
  return writer.take();
}

}  // namespace berth::view
