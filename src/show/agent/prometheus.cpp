// Names follow Prometheus' own rules: base units, _ratio for shares, _total on counters only. What
// a device is called is on one _info metric; the others have its UUID as the key, and its index,
// which people know it by.
#include "berth/agent/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "berth/device/device.h"
#include "berth/device/device_readings.h"
#include "berth/job/job.h"
#include "berth/verdict/verdict.h"
#include "berth/view/server_metrics.h"

namespace berth::view {
namespace {

template <class T>
std::optional<double> as_number(const Reading<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

constexpr double kMilli = 0.001;

/// Prometheus wants base units.
double in_base_unit(double value, FieldKind kind) {
  switch (kind) {
    case FieldKind::percent:
      return value / 100;
    case FieldKind::megahertz:
      return value * 1e6;
    default:
      return value;
  }
}

MetricLabels key_of(const Device& device) {
  return {{"uuid", device.uuid}, {"gpu", label(device)}};
}

std::size_t outsiders_on(const Device& device, const Listing& listing) {
  const auto leases = leases_holding(device, listing.ledger);
  return static_cast<std::size_t>(std::ranges::count_if(*device.processes, [&](const Process& process) {
    return is_outsider(process, leases, listing.facts);
  }));
}

void write_devices(MetricWriter& writer, const Listing& listing) {
  const std::vector<Device>& devices = listing.facts.snapshot.devices;
  writer.metric("device_info", "gauge", "What the device is; always 1.");
  for (const Device& device : devices) {
    MetricLabels labels = key_of(device);
    labels.insert(labels.end(), {{"name", device.name},
                                 {"pci_bus_id", device.pci_bus_id},
                                 {"parent_uuid", device.mig ? device.mig->parent_uuid : ""}});
    writer.sample(labels, 1);
  }
  writer.metric("device_up", "gauge",
                "Whether the device answers the driver and is healthy enough to be asked.");
  for (const Device& device : devices) writer.sample(key_of(device), device.state == DeviceState::ok ? 1 : 0);
  for (const DeviceReading& row : device_readings()) {
    if (row.metric.empty()) continue;
    writer.metric(row.metric, row.metric.ends_with("_total") ? "counter" : "gauge", row.help);
    for (const Device& device : devices) {
      if (const Reading<double> value = number_of(row, device))
        writer.sample(key_of(device), in_base_unit(*value, row.kind));
    }
  }
  writer.metric("device_recovery_needed", "gauge",
                "Whether the driver asks for something before new work starts; the label says for what.");
  for (const Device& device : devices) {
    if (device.health.recovery_action.empty()) continue;
    MetricLabels labels = key_of(device);
    labels.emplace_back("action", device.health.recovery_action);
    writer.sample(labels, recovery_of(device) != nullptr ? 1 : 0);
  }
  writer.metric("device_processes", "gauge", "Processes that the driver lists on the device.");
  for (const Device& device : devices) {
    if (device.processes) writer.sample(key_of(device), static_cast<double>(device.processes->size()));
  }
  writer.metric(
      "device_outsiders", "gauge",
      "Processes that compute on the device without a lease for it, and that the site does not ignore.");
  for (const Device& device : devices) {
    if (device.processes) writer.sample(key_of(device), static_cast<double>(outsiders_on(device, listing)));
  }
}

void write_verdicts(MetricWriter& writer, const Listing& listing) {
  writer.metric("device_free", "gauge", "Whether a request for one whole device could have it now.");
  for (const Verdict& verdict : listing.verdicts) {
    if (const Device* device = find_device(listing.facts.snapshot, verdict.uuid))
      writer.sample(key_of(*device), verdict.free() ? 1 : 0);
  }
  writer.metric("device_refused", "gauge",
                "Whether no request for one whole device could have it now; the label says why: the first "
                "condition that fails.");
  for (const Verdict& verdict : listing.verdicts) {
    const Device* device = find_device(listing.facts.snapshot, verdict.uuid);
    if (device == nullptr || verdict.free()) continue;
    MetricLabels labels = key_of(*device);
    labels.emplace_back("clause", to_text(*verdict.failed));
    writer.sample(labels, 1);
  }
  writer.metric(
      "device_passed_over_users", "gauge",
      "Users whose requests pass the device over, because their runs on it died and live elsewhere.");
  for (const Device& device : listing.facts.snapshot.devices) {
    const auto users = listing.facts.passed_over_for.find(device.uuid);
    const bool is_known = users != listing.facts.passed_over_for.end();
    writer.sample(key_of(device), is_known ? static_cast<double>(users->second.size()) : 0);
  }
  writer.metric("device_memory_grantable_bytes", "gauge",
                "Memory that a new lease could be promised: what is neither promised to others nor in use.");
  for (const Verdict& verdict : listing.verdicts) {
    if (const Device* device = find_device(listing.facts.snapshot, verdict.uuid))
      writer.sample(key_of(*device), as_number(verdict.free_bytes));
  }
}

void write_idleness(MetricWriter& writer, const Listing& listing, std::int64_t now_s) {
  const std::vector<Device>& devices = listing.facts.snapshot.devices;
  writer.metric("device_lease_idle", "gauge",
                "Whether nothing of the leases that hold the device computes on it.");
  const LeasesByDevice leases(listing.ledger);
  for (const Device& device : devices)
    writer.sample(key_of(device), as_number(is_idle(device, leases_holding(device, leases), listing.facts)));
  writer.metric(
      "device_lease_idle_seconds", "gauge",
      "How long that has been so; absent while it is not, and when the agent did not see it begin.");
  for (const Device& device : devices) {
    if (const auto since_s = listing.idle.since(device, leases_holding(device, leases)))
      writer.sample(key_of(device), static_cast<double>(std::max<std::int64_t>(0, now_s - *since_s)));
  }
}

void write_leases(MetricWriter& writer, const Listing& listing) {
  const Snapshot& snapshot = listing.facts.snapshot;
  const auto each_lease = [&](auto&& write) {
    for (const Ticket& ticket : listing.ledger.tickets) {
      if (ticket.phase == TicketPhase::granted) write(ticket);
    }
  };
  writer.metric("device_leases", "gauge", "Leases on the device.");
  for (const Device& device : snapshot.devices)
    writer.sample(key_of(device), static_cast<double>(leases_on(listing.ledger, device.uuid).size()));
  writer.metric("lease_info", "gauge", "Whose lease is on which device; always 1.");
  each_lease([&](const Ticket& lease) {
    for (const std::string& uuid : lease.devices) {
      MetricLabels labels{{"lease", to_text(lease.id)}, {"user", lease.user}, {"uuid", uuid}};
      if (const Device* device = find_device(snapshot, uuid)) labels.emplace_back("gpu", label(*device));
      writer.sample(labels, 1);
    }
  });
  writer.metric("lease_start_timestamp_seconds", "gauge", "When the lease was granted.");
  each_lease([&](const Ticket& lease) {
    writer.sample({{"lease", to_text(lease.id)}},
                  lease.since_s == 0 ? std::nullopt : std::optional<double>(lease.since_s));
  });
  writer.metric("lease_end_timestamp_seconds", "gauge", "When the time of the lease is over, if it has one.");
  each_lease([&](const Ticket& lease) {
    if (const auto end_s = said_end_at_s(lease, listing.facts.booted_at_s))
      writer.sample({{"lease", to_text(lease.id)}}, static_cast<double>(*end_s));
  });
  std::map<std::string, double> devices_of_users;
  each_lease([&](const Ticket& lease) {
    devices_of_users[lease.user] += static_cast<double>(lease.devices.size());
  });
  writer.metric("user_leased_devices", "gauge", "Devices that the user has leased, whole or in part.");
  for (const auto& [user, count] : devices_of_users) writer.sample({{"user", user}}, count);
}

void write_queue(MetricWriter& writer, const Metrics& metrics) {
  std::map<std::string, double> of_users;
  double longest_s = 0;
  for (const Standing& waiter : metrics.waiters) {
    of_users[waiter.ticket.user] += 1;
    longest_s = std::max(longest_s, static_cast<double>(metrics.now_s - waiter.ticket.since_s));
  }
  writer.metric("queue_waiters", "gauge", "Requests that wait.");
  std::size_t unlisted = 0;
  if (metrics.listing != nullptr) {
    for (const Unlisted& rest : metrics.listing->ledger.unlisted) {
      if (rest.waiting > 0) of_users[rest.user] += static_cast<double>(rest.waiting);
      unlisted += rest.waiting;
    }
  }
  writer.sample({}, static_cast<double>(metrics.waiters.size() + unlisted));
  writer.metric("queue_longest_wait_seconds", "gauge", "How long the one that waits longest has waited.");
  writer.sample({}, longest_s);
  writer.metric("user_waiters", "gauge", "Requests of the user that wait.");
  for (const auto& [user, count] : of_users) writer.sample({{"user", user}}, count);
}

// Others know of jobs only by the tickets of their tasks. A task that is not in the queue has none.
void write_jobs(MetricWriter& writer, const Listing& listing) {
  struct JobsOfUser {
    double in_queue = 0;
    double running = 0;
  };
  std::map<std::string, JobsOfUser> of_users;
  std::vector<std::pair<const Ticket*, TaskNote>> running;
  for (const Ticket& ticket : listing.ledger.tickets) {
    auto job = task_note_from_text(ticket.note);
    if (!job) continue;
    const bool runs = ticket.phase == TicketPhase::granted;
    (runs ? of_users[ticket.user].running : of_users[ticket.user].in_queue) += 1;
    if (runs) running.emplace_back(&ticket, std::move(*job));
  }
  writer.metric("jobs", "gauge", "Submitted jobs of the user, each task of an array for itself.");
  for (const auto& [user, count] : of_users) {
    writer.sample({{"user", user}, {"state", "in_line"}}, count.in_queue);
    writer.sample({{"user", user}, {"state", "running"}}, count.running);
  }
  writer.metric("job_info", "gauge", "Which lease is for which job; always 1.");
  for (const auto& [ticket, job] : running) {
    writer.sample({{"lease", to_text(ticket->id)},
                   {"user", ticket->user},
                   {"job", to_text(job.task)},
                   {"name", job.name}},
                  1);
  }
}

void write_counts(MetricWriter& writer, const LeaseCounts& counts) {
  writer.metric("leases_granted_total", "counter", "Leases granted since the agent began.");
  writer.sample({}, static_cast<double>(counts.granted));
  writer.metric("leases_ended_total", "counter", "Leases ended since the agent began.");
  writer.sample({}, static_cast<double>(counts.ended));
  writer.metric("lease_wait_seconds", "histogram", "How long leases had waited when they were granted.");
  for (std::size_t i = 0; i < counts.waited_at_most.size(); ++i) {
    writer.sample({{"le", fmt::format("{}", LeaseCounts::kWaitBounds[i])}},
                  static_cast<double>(counts.waited_at_most[i]), "_bucket");
  }
  writer.sample({{"le", "+Inf"}}, static_cast<double>(counts.granted), "_bucket");
  writer.sample({}, counts.waited_s, "_sum");
  writer.sample({}, static_cast<double>(counts.granted), "_count");
}

}  // namespace

namespace {

void write_history(MetricWriter& writer, const HistoryHealth& history) {
  if (history.status == HistoryHealth::Status::off) return;
  writer.metric("history_up", "gauge", "Whether the history is being written.");
  writer.sample({}, history.status == HistoryHealth::Status::ok ? 1 : 0);
  writer.metric("history_lost_samples_total", "counter",
                "Samples that could not be kept until there was room.");
  writer.sample({}, static_cast<double>(history.lost));
}

}  // namespace

std::string prometheus_text(const Metrics& metrics) {
  MetricWriter writer;
  writer.metric("build_info", "gauge", "The Berth that answers; always 1.");
  writer.sample({{"version", std::string(metrics.version)}}, 1);
  const bool answers = metrics.listing != nullptr && !metrics.listing->facts.snapshot.stale_reason;
  writer.metric("up", "gauge", "Whether the driver answers and the lease directory can be read.");
  writer.sample({}, answers ? 1 : 0);
  write_counts(writer, metrics.counts);
  write_history(writer, metrics.history);
  if (metrics.listing == nullptr) return writer.take();
  const Snapshot& snapshot = metrics.listing->facts.snapshot;
  writer.metric("driver_info", "gauge", "The driver; always 1.");
  writer.sample({{"version", snapshot.driver_version}}, 1);
  writer.metric("snapshot_timestamp_seconds", "gauge", "When the devices were read.");
  writer.sample({}, static_cast<double>(snapshot.taken_at_ns / 1'000'000) * kMilli);
  write_devices(writer, *metrics.listing);
  write_verdicts(writer, *metrics.listing);
  write_leases(writer, *metrics.listing);
  write_jobs(writer, *metrics.listing);
  write_idleness(writer, *metrics.listing, metrics.now_s);
  write_queue(writer, metrics);
  return writer.take();
}

}  // namespace berth::view
