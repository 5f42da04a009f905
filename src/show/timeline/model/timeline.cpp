#include "berth/timeline/model/timeline.h"

#include <algorithm>
#include <set>

#include "berth/queue/schedule.h"
#include "berth/verdict/verdict.h"

namespace berth {
namespace {

const std::string& words_of(const Ticket& ticket) {
  return ticket.note.empty() ? ticket.command : ticket.note;
}

std::string owner_of(const std::string& user, Reading<std::uint32_t> uid) {
  return user.empty() && uid ? "uid " + std::to_string(*uid) : user;
}

/// About when a lease without a time limit ends. A day is as long as anything is expected to last,
/// so it means "a day or more". Of one that has outlasted the others nothing is known any more.
std::optional<std::int64_t> expected_end_of(const Ticket& lease, std::int64_t now_s) {
  if (lease.time_s || !lease.expected_s || *lease.expected_s >= kMostExpectedS) return std::nullopt;
  if (expected_by(lease) != ExpectedBy::runs) return std::nullopt;
  const std::int64_t end_s = lease.since_s + *lease.expected_s;
  return end_s > now_s ? std::optional(end_s) : std::nullopt;
}

class TimelineMaker {
 public:
  TimelineMaker(const HostReport& report, const RecordedLeases* past, const TimelineSpan& span)
      : report_(report), past_(past) {
    made_.from_s = span.now_s - span.back_s;
    made_.now_s = span.now_s;
    made_.to_s = span.now_s + span.ahead_s;
    for (const Ticket& ticket : report.ledger.tickets) living_.insert(ticket.id);
  }

  Timeline made() && {
    if (past_ != nullptr && past_->step_s > 0) {
      made_.step_s = past_->step_s;
      made_.from_s = past_->from_s;
    }
    for (const Standing& waiter : report_.waiters) add(waiter);
    for (const Device& device : report_.facts.snapshot.devices) {
      if (!is_split(device)) add(device);
    }
    return std::move(made_);
  }

 private:
  void add(const Standing& waiter) {
    const Ticket& ticket = waiter.ticket;
    TimelineWaiter one{.id = ticket.id,
                       .user = owner_of(ticket.user, ticket.uid),
                       .uid = ticket.uid,
                       .position = waiter.position,
                       .count = ticket.count,
                       .what = words_of(ticket),
                       .starts_at_s = waiter.starts_at_s};
    if (waiter.starts_at_s && ticket.time_s) one.until_s = *waiter.starts_at_s + *ticket.time_s;
    made_.queue.push_back(std::move(one));
  }

  void add(const Device& device) {
    TimelineRow row{.uuid = device.uuid, .label = label(device)};
    add_past(row);
    const std::vector<const Ticket*> leases = leases_holding(device, report_.ledger);
    for (const Ticket* lease : leases) row.bars.push_back(bar_of(*lease, device));
    note_end(row, leases);
    if (const Reading<bool> idle = is_idle(device, leases, report_.facts); idle && *idle) {
      row.idle = true;
      row.idle_since_s = report_.idle.since(device, leases);
    }
    add_reservations(row);
    const auto verdict = std::ranges::find(report_.verdicts, device.uuid, &Verdict::uuid);
    if (verdict != report_.verdicts.end()) add_verdict(*verdict, device, leases, row);
    std::ranges::stable_sort(row.bars, {}, &TimelineBar::from_s);
    made_.rows.push_back(std::move(row));
  }

  void add_past(TimelineRow& row) {
    if (past_ == nullptr) return;
    const auto found = std::ranges::find(past_->devices, row.uuid);
    if (found == past_->devices.end()) return;
    const auto place = static_cast<std::size_t>(found - past_->devices.begin());
    if (place < past_->loads.size()) row.loads = past_->loads[place];
    for (const RecordedLease& lease : past_->leases) {
      if (living_.contains(lease.id) || std::ranges::find(lease.devices, place) == lease.devices.end())
        continue;
      // A lease that the history has not seen end yet has ended since its last look.
      const std::int64_t until_s = std::min(lease.ended_s.value_or(made_.now_s), made_.now_s);
      if (until_s <= made_.from_s) continue;
      row.bars.push_back({.kind = BarKind::lease,
                          .end = BarEnd::over,
                          .from_s = lease.begun_s,
                          .until_s = until_s,
                          .user = lease.user,
                          .what = {},
                          .id = lease.id,
                          .whole = !lease.wish || lease.wish->whole,
                          .yields = lease.wish && lease.wish->yields});
      if (lease.wish && lease.wish->whole) add_figures(row.bars.back(), place);
      if (const auto figures = lease.figures.find(place); figures != lease.figures.end()) {
        row.bars.back().energy_mj = figures->second.energy_mj;
        row.bars.back().clean = figures->second.clean;
      }
    }
  }

  // In a step at the edge of the lease, somebody else had the device too.
  void add_figures(TimelineBar& bar, std::size_t place) const {
    if (past_->step_s <= 0 || place >= past_->loads.size() || place >= past_->memories.size()) return;
    const std::vector<Reading<int>>& loads = past_->loads[place];
    const std::vector<Reading<int>>& memories = past_->memories[place];
    std::int64_t sum = 0;
    std::int64_t told = 0;
    std::int64_t step_s = past_->from_s;
    for (std::size_t i = 0; i < std::min(loads.size(), memories.size()); ++i, step_s += past_->step_s) {
      if (step_s < bar.from_s || step_s + past_->step_s > bar.until_s) continue;
      bar.peak_mib = std::max(bar.peak_mib, memories[i]);
      sum += loads[i].value_or(0);
      told += loads[i] ? 1 : 0;
    }
    if (told > 0) bar.use_percent = static_cast<int>(sum / told);
  }

  TimelineBar bar_of(const Ticket& lease, const Device& device) const {
    const auto end_s = said_end_at_s(lease, report_.facts.booted_at_s);
    return {.kind = BarKind::lease,
            .end = end_s ? BarEnd::limit : BarEnd::open,
            .from_s = std::min(lease.since_s, made_.now_s),
            // A job that is being ended may outlast its time.
            .until_s = std::max(end_s.value_or(made_.to_s), made_.now_s),
            .user = owner_of(lease.user, lease.uid),
            .what = words_of(lease),
            .id = lease.id,
            .uid = lease.uid,
            .whole = takes_whole(lease, device),
            .yields = lease.yield_s.has_value(),
            .expected_s = end_s ? std::nullopt : expected_end_of(lease, made_.now_s)};
  }

  /// The device is free when the last of its leases has ended.
  void note_end(const TimelineRow& row, const std::vector<const Ticket*>& leases) {
    NextEnd last{row.uuid, row.label};
    for (const Ticket* lease : leases) {
      const auto limit_s = said_end_at_s(*lease, report_.facts.booted_at_s);
      const auto end_s = limit_s ? limit_s : expected_end_of(*lease, made_.now_s);
      if (!end_s) return;
      if (last.at_s < *end_s) last.expected = !limit_s;
      last.at_s = std::max({last.at_s, *end_s, made_.now_s});
    }
    if (leases.empty() || (made_.next && made_.next->at_s <= last.at_s)) return;
    made_.next = std::move(last);
  }

  void add_reservations(TimelineRow& row) const {
    for (std::size_t i = 0; i < report_.waiters.size(); ++i) {
      const Standing& waiter = report_.waiters[i];
      const TimelineWaiter& told = made_.queue[i];
      if (!told.starts_at_s || std::ranges::find(waiter.starts_on, row.uuid) == waiter.starts_on.end())
        continue;
      row.bars.push_back({.kind = BarKind::reservation,
                          .end = told.until_s ? BarEnd::limit : BarEnd::open,
                          .from_s = std::max(*told.starts_at_s, made_.now_s),
                          .until_s = std::max(told.until_s.value_or(made_.to_s), made_.now_s),
                          .user = told.user,
                          .what = told.what,
                          .id = told.id,
                          .uid = told.uid,
                          .whole = !waiter.ticket.shared,
                          .yields = waiter.ticket.yield_s.has_value()});
    }
  }

  void add_verdict(const Verdict& verdict, const Device& device, const std::vector<const Ticket*>& leases,
                   TimelineRow& row) const {
    row.free = verdict.free();
    for (const Process& process : device.processes.value_or(std::vector<Process>{})) {
      if (!is_outsider(process, leases, report_.facts) || verdict.free()) continue;
      row.bars.push_back({.kind = BarKind::outsider,
                          .from_s = std::min(process.started_at_s.value_or(made_.now_s), made_.now_s),
                          .until_s = made_.to_s,
                          .user = owner_of(process.user, process.uid),
                          .what = process.command,
                          .id = {},
                          .uid = process.uid.value_or(0)});
    }
    if (verdict.free() || verdict.failed == Clause::not_leased || verdict.failed == Clause::no_outsider)
      return;
    if (verdict.failed == Clause::not_awaited) return keep(verdict, row);
    row.bars.push_back(
        {.kind = BarKind::unusable,
         .from_s = made_.now_s,
         .until_s = made_.to_s,
         .user = {},
         .what = verdict.reason.empty() ? std::string(to_text(*verdict.failed)) : verdict.reason,
         .id = {}});
  }

  /// It is free, and kept for a request: from now on, though that starts later.
  void keep(const Verdict& verdict, TimelineRow& row) const {
    const auto is_reservation = [](const TimelineBar& bar) { return bar.kind == BarKind::reservation; };
    TimelineBar* first = nullptr;
    for (TimelineBar& bar : row.bars) {
      if (is_reservation(bar) && (first == nullptr || bar.from_s < first->from_s)) first = &bar;
    }
    if (first != nullptr) {
      first->from_s = made_.now_s;
      return;
    }
    row.bars.push_back({.kind = BarKind::reservation,
                        .from_s = made_.now_s,
                        .until_s = made_.to_s,
                        .user = verdict.culprits.empty() ? std::string() : verdict.culprits.front().user,
                        .what = verdict.culprits.empty() ? std::string() : verdict.culprits.front().command,
                        .id = {}});
  }

  const HostReport& report_;
  const RecordedLeases* past_;
  Timeline made_;
  std::set<TicketId> living_;
};

}  // namespace

Timeline timeline_of(const HostReport& report, const RecordedLeases* past, const TimelineSpan& span) {
  return TimelineMaker(report, past, span).made();
}

}  // namespace berth
