#include "berth/history/model/usage_recorder.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "berth/job/job.h"
#include "berth/usage/run_samples.h"
#include "berth/verdict/verdict.h"

namespace berth::history {
namespace {

template <class Number>
Reading<int> whole(const Reading<Number>& value, std::uint64_t unit = 1) {
  if (!value) return std::nullopt;
  return static_cast<int>((static_cast<std::uint64_t>(*value) + unit / 2) / unit);
}

DeviceSeen device_seen(const Device& device, bool is_stale, bool leased) {
  DeviceSeen seen{device.uuid, label(device), device.name, {}};
  seen.sample.leased_percent = leased ? 100 : 0;
  if (is_stale || device.state != DeviceState::ok) return seen;
  seen.sample.utilization_percent = whole(device.utilization_percent);
  seen.sample.memory_used_mib = whole(device.memory.used_bytes, 1U << 20U);
  seen.sample.temperature_c = device.temperature_c;
  seen.sample.power_w = whole(device.power_mw, 1000);
  // The card counts only the whole, and a part of it has no clocks of its own.
  if (device.mig) return seen;
  seen.energy_mj = device.energy_mj;
  if (device.throttle_reasons) seen.throttled = is_throttled(*device.throttle_reasons);
  return seen;
}

/// As `berth list` says "idle", but for one of the leases on a device.
Reading<bool> is_used(const ComplianceReport& report, std::string_view uuid) {
  for (const DeviceUse& use : report.devices) {
    if (use.device->uuid != uuid || !use.told) continue;
    if (!use.processes.empty()) return true;
    if (use.nameless.empty()) return false;
  }
  return std::nullopt;
}

Reading<bool> has_outsiders(const Facts& facts, const Ticket& lease, const std::string& uuid) {
  const Device* device = find_device(facts.snapshot, uuid);
  if (device == nullptr || device->state != DeviceState::ok || !device->processes) return std::nullopt;
  bool is_any_nameless = false;
  for (const Process& process : *device->processes) {
    if (!computes_without_lease(process, {&lease}, facts)) continue;
    if (process.uid) return true;
    is_any_nameless = true;
  }
  return is_any_nameless ? std::nullopt : Reading<bool>(false);
}

}  // namespace

Observation observe(const Facts& facts, const Ledger& ledger, TimeOfLook at, std::int64_t every_s) {
  Observation observation{at, every_s, {}, {}};
  const bool is_stale = facts.snapshot.stale_reason.has_value();
  // Once for all leases: of thousands, each would look at all others.
  const LeasesByDevice leases(ledger);
  for (const Device& device : facts.snapshot.devices) {
    if (device.uuid.empty()) continue;
    observation.devices.push_back(device_seen(device, is_stale, !leases.on(device.uuid).empty()));
  }
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase != TicketPhase::granted) continue;
    LeaseSeen lease{ticket.id, ticket.since_s, ticket.user, {}};
    if (auto job = task_note_from_text(ticket.note)) lease.job = std::move(job->name);
    lease.wish = {ticket.joined_s, ticket.time_s, !ticket.shared, ticket.yield_s.has_value(), {}};
    if (!ticket.command.empty()) lease.wish->command = fingerprint_of(ticket.uid, ticket.command);
    const ComplianceReport report = is_stale ? ComplianceReport() : compliance_of(ticket, ledger, facts);
    for (const std::string& uuid : ticket.devices) {
      const auto sharers = std::max<std::size_t>(1, leases.on(uuid).size());
      lease.devices.push_back({uuid, 1.0 / static_cast<double>(sharers), is_used(report, uuid),
                               is_stale ? std::nullopt : has_outsiders(facts, ticket, uuid)});
    }
    observation.leases.push_back(std::move(lease));
  }
  return observation;
}

namespace {

constexpr double kMillijoulesPerWattSecond = 1000;

}  // namespace

void LeaseTally::see(const DeviceSeen& device, const LeasedSeen& lease, double seconds, bool is_missed) {
  see_energy(device, seconds);
  if (device.throttled.value_or(false) || lease.beside.value_or(false)) is_clean_ = false;
  if (is_missed || !device.throttled || !lease.beside) tells_clean_ = false;
}

void LeaseTally::see_energy(const DeviceSeen& device, double seconds) {
  if (device.sample.power_w)
    since_counter_mj_ += seconds * kMillijoulesPerWattSecond * *device.sample.power_w;
  else
    tells_energy_ = false;
  if (!device.energy_mj) return;
  // The counter begins anew when the driver is loaded.
  if (counter_mj_ && *device.energy_mj < *counter_mj_) tells_energy_ = false;
  energy_mj_ += counter_mj_ ? static_cast<double>(*device.energy_mj) - static_cast<double>(*counter_mj_)
                            : since_counter_mj_;
  since_counter_mj_ = 0;
  counter_mj_ = device.energy_mj;
  ++counters_;
}

RecordedFigures LeaseTally::figures() const {
  RecordedFigures figures;
  if (tells_energy_ && counters_ > 1)
    figures.energy_mj = static_cast<std::uint64_t>(std::llround(energy_mj_ + since_counter_mj_));
  if (!is_clean_ || tells_clean_) figures.clean = is_clean_;
  return figures;
}

namespace {

constexpr std::int64_t kHour = 3600;
constexpr double kStepOfClock =
    2;  // seconds that the clocks may differ by in an interval: rounding, and slewing

// As a receipt has it: a look may be late, and one may be missing.
constexpr std::int64_t kMissedLooks = 3;

/// Drops the oldest quarter of the rows of the user who has the most rows. Gives how many these
/// are.
template <class Rows, class UserOf>
std::size_t drop_oldest_of_largest(Rows& rows, const UserOf& user_of) {
  std::map<std::string, std::size_t> counts;
  for (const auto& each : rows) ++counts[user_of(each)];
  const auto largest = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
  const std::size_t wanted = (largest->second + 3) / 4;
  std::size_t left = wanted;
  for (auto row = rows.begin(); left > 0;) {
    const bool goes = user_of(*row) == largest->first;
    row = goes ? rows.erase(row) : std::next(row);
    left -= goes ? 1 : 0;
  }
  return wanted;
}

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void Recorder::see(const Observation& observation) {
  const Interval interval = interval_until(observation.at);
  for (const DeviceSeen& device : observation.devices) {
    const DeviceName name{device.label, device.name};
    const auto [known, is_new] = names_.try_emplace(device.uuid, name);
    if (is_new || known->second != name) pending_.devices[device.uuid] = known->second = name;
  }
  sample(observation);
  count(observation, interval);
  watch(interval, observation.at.wall_s);
  last_ = observation.at;
  every_s_ = observation.every_s;
  keep_within_bounds();
}

Recorder::Interval Recorder::interval_until(const TimeOfLook& at) const {
  if (!last_) return {.first = true};
  const double seconds = std::max(0.0, history::seconds_of(at.boot - last_->boot));
  return {.watched = seconds <= static_cast<double>(2 * every_s_ + 30), .seconds = seconds};
}

void Recorder::sample(const Observation& observation) {
  const std::int64_t step_s = step_of(observation.at.wall_s, kTiers[0].step_s);
  if (step_s != step_s_) {
    for (const auto& [uuid, merger] : step_) pending_.samples.push_back({step_s_, uuid, merger.merged()});
    step_.clear();
    step_s_ = step_s;
  }
  for (const DeviceSeen& device : observation.devices) step_[device.uuid].add(device.sample);
}

void Recorder::count(const Observation& observation, const Interval& interval) {
  std::map<LeaseKey, std::string> live;
  for (const LeaseSeen& lease : observation.leases) {
    for (const LeasedSeen& device : lease.devices) {
      const LeaseKey key{lease.since_s, lease.id, device.uuid};
      live.emplace(key, lease.user);
      const double seconds = seconds_of(key, observation.at, interval);
      const bool used = device.used.value_or(false) && interval.watched;
      const Counted a_second{device.share, used ? device.share : 0};
      LeaseChange& change = pending_.leases[key];
      change.user = lease.user;
      if (lease.job) change.job = counted_name(step_of(observation.at.wall_s, kHour), lease.user, *lease.job);
      change.wish = lease.wish;
      change.ended_s.reset();
      change.more.add({seconds * a_second.leased_s, seconds * a_second.used_s});
      add_hours(lease, device.uuid, observation.at.wall_s, seconds, a_second);
      if (lease.wish && lease.wish->whole) tally(key, device, observation, interval, seconds);
    }
  }
  end_missing(live, interval, observation.at.wall_s);
  live_ = std::move(live);
}

void Recorder::tally(const LeaseKey& key, const LeasedSeen& lease, const Observation& observation,
                     const Interval& interval, double seconds) {
  const auto device = std::ranges::find(observation.devices, lease.uuid, &DeviceSeen::uuid);
  if (interval.first || device == observation.devices.end()) return;
  const bool is_new = !live_.contains(key);
  const auto found = is_new ? tallies_.try_emplace(key).first : tallies_.find(key);
  if (found == tallies_.end()) return;
  const bool is_missed = seconds > static_cast<double>(kMissedLooks * every_s_);
  found->second.see(*device, lease, seconds, is_missed);
}

/// How much of its time was not counted yet.
double Recorder::seconds_of(const LeaseKey& key, const TimeOfLook& at, const Interval& interval) const {
  if (live_.contains(key)) return interval.seconds;
  const double since_grant = static_cast<double>(at.wall_s - key.begun_s);
  // A lease older than the last look would have been seen there.
  if (!interval.first) return std::clamp(since_grant, 0.0, interval.seconds);
  const bool known = known_.open.contains(key);
  const double since_known = static_cast<double>(at.wall_s - known_.watched_until_s);
  // Whatever the wall clock says, it is not older than its ticket.
  const double age = std::max(0.0, history::seconds_of(at.boot) - static_cast<double>(key.id.value) / 1e9);
  return std::clamp(known ? std::min(since_grant, since_known) : since_grant, 0.0, age);
}

void Recorder::add_hours(const LeaseSeen& lease, const std::string& uuid, std::int64_t until_s,
                         double seconds, const Counted& a_second) {
  auto end = static_cast<double>(until_s);
  do {  // once also for no time at all: the lease was there
    // The end itself belongs to the hour before it.
    const std::int64_t hour_s = step_of(static_cast<std::int64_t>(std::ceil(end)) - 1, kHour);
    const double part = std::min(seconds, end - static_cast<double>(hour_s));
    const Counted counted{part * a_second.leased_s, part * a_second.used_s};
    pending_.hours[{hour_s, lease.user, uuid}].add(counted);
    if (lease.job)
      pending_.job_hours[{hour_s, lease.user, counted_name(hour_s, lease.user, *lease.job)}].add(counted);
    seconds -= part;
    end -= part;
  } while (seconds > 0);
}

/// The hours that a user had are all counted, whatever the user calls the jobs.
const std::string& Recorder::counted_name(std::int64_t hour_s, const std::string& user,
                                          const std::string& job) {
  static const std::string others(kOtherJobs);
  if (hour_s != named_hour_s_) {
    named_hour_s_ = hour_s;
    job_names_.clear();
  }
  std::set<std::string>& names = job_names_[user];
  if (names.contains(job)) return job;
  if (names.size() >= kMostJobNames) return others;
  names.insert(job);
  return job;
}

void Recorder::end_missing(const std::map<LeaseKey, std::string>& live, const Interval& interval,
                           std::int64_t wall_s) {
  const std::int64_t unseen_s = interval.first ? known_.watched_until_s : last_->wall_s;
  for (const auto& [key, user] : interval.first ? known_.open : live_) {
    if (live.contains(key)) continue;
    LeaseChange& change = pending_.leases[key];
    change.user = user;
    change.ended_s = std::max(key.begun_s, interval.watched ? wall_s : unseen_s);
    change.end_seen = interval.watched;
    if (const auto tally = tallies_.find(key); tally != tallies_.end() && interval.watched)
      change.figures = tally->second.figures();
  }
  std::erase_if(tallies_, [&](const auto& each) { return !live.contains(each.first); });
}

void Recorder::watch(const Interval& interval, std::int64_t wall_s) {
  const bool goes_on =
      interval.watched && span_ &&
      std::abs(static_cast<double>(wall_s - last_->wall_s) - interval.seconds) <= kStepOfClock;
  if (goes_on) {
    span_->to_s = std::max(span_->to_s, wall_s);
  } else {
    span_ = {wall_s, wall_s};
  }
  pending_.watched[span_->from_s] = span_->to_s;
}

void Recorder::keep_within_bounds() {
  if (pending_.samples.size() > kMostPendingRows) {
    const auto gone = kMostPendingRows / 4;
    pending_.samples.erase(pending_.samples.begin(), pending_.samples.begin() + gone);
    lost_ += gone;
  }
  const auto of_lease = [](const auto& each) { return each.second.user; };
  const auto of_hour = [](const auto& each) { return each.first.user; };
  while (pending_.leases.size() + pending_.hours.size() + pending_.job_hours.size() > kMostPendingRows) {
    if (pending_.job_hours.size() > std::max(pending_.leases.size(), pending_.hours.size()))
      lost_ += drop_oldest_of_largest(pending_.job_hours, of_hour);
    else if (pending_.leases.size() > pending_.hours.size())
      lost_ += drop_oldest_of_largest(pending_.leases, of_lease);
    else
      lost_ += drop_oldest_of_largest(pending_.hours, of_hour);
  }
  while (pending_.watched.size() > kMostPendingRows) pending_.watched.erase(pending_.watched.begin());
}

}  // namespace berth::history
