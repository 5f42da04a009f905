#include "berth/render/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "berth/core/units.h"
#include "berth/render/explain.h"
#include "berth/render/table.h"

namespace berth::render {
namespace {

Cell text_cell(std::string_view text) {
  return {text.empty() ? std::string(kUnknown) : printable(text)};
}

std::string waited(const Ticket& ticket, const Style& style) {
  return duration_for_people(std::max<std::int64_t>(0, style.now_s - ticket.joined_s));
}

std::string short_noted_command(const Ticket& ticket) {
  Ticket shortened = ticket;
  shortened.command = short_command(ticket.command);
  const std::string text = noted_command(shortened);
  return text.empty() ? std::string(kUnknown) : text;
}

constexpr std::ptrdiff_t kAfterWaited = 5;

/// A request, which may wait on several hosts at once.
struct LabWaiter {
  const Host* at;           ///< where it is nearest to its start
  const Standing* nearest;  ///< there
  std::size_t hosts = 1;    ///< on which it waits
};

class LabQueue {
 public:
  void add(const Host& host, const Standing& waiter) {
    const Ticket& ticket = waiter.ticket;
    if (!ticket.asked_at.empty()) {
      // The user is what the kernel says; the other is the request's own word.
      const auto [found, is_new] =
          seen_.try_emplace(std::pair(ticket.asked_at, ticket.user), waiters_.size());
      if (!is_new) return stand_there_too(waiters_[found->second], host, waiter);
    }
    waiters_.push_back({&host, &waiter});
  }

  /// In the order in which they were found.
  const std::vector<LabWaiter>& waiters() const { return waiters_; }

 private:
  static void stand_there_too(LabWaiter& waiter, const Host& host, const Standing& there) {
    ++waiter.hosts;
    const auto key = [](const Standing& each) {
      return std::pair(each.starts_at_s.value_or(kNever), each.position);
    };
    if (key(there) >= key(*waiter.nearest)) return;
    waiter.at = &host;
    waiter.nearest = &there;
  }

  std::map<std::pair<std::string, std::string>, std::size_t> seen_;
  std::vector<LabWaiter> waiters_;
};

}  // namespace

std::vector<Column> waiter_columns(bool foresees) {
  std::vector<Column> columns{{"POS", Align::right},           {"ID", Align::left},
                              {"USER", Align::left, 8},        {"PID", Align::right, 0, 3},
                              {"WAITED", Align::right},        {"BEHIND", Align::left, 0, 4},
                              {"REQUEST", Align::left, 12, 2}, {"COMMAND", Align::left, 10, 1},
                              {"REASON", Align::left, 16}};
  if (foresees) columns.insert(columns.begin() + kAfterWaited, {"START", Align::right});
  return columns;
}

Row waiter_row(const Standing& waiter, const Ledger& ledger, bool foresees, const Style& style) {
  const Ticket& ticket = waiter.ticket;
  Row row{{std::to_string(waiter.position)},
          {short_name(ledger, ticket.id)},
          text_cell(ticket.user),
          {std::to_string(ticket.pid)},
          {waited(ticket, style)},
          {waiter.behind ? short_name(ledger, waiter.behind->id) : std::string(kUnknown)},
          text_cell(ticket.request),
          {short_noted_command(ticket)},
          {waiter.reason, Tone::waiting}};
  if (!foresees) return row;
  std::string start = clock_time(waiter.starts_at_s.value_or(0), style);
  row.insert(row.begin() + kAfterWaited, {start.empty() ? std::string(kUnknown) : std::move(start)});
  return row;
}

bool any_start_is_known(const std::vector<Standing>& waiters) {
  return std::ranges::any_of(waiters, [](const Standing& each) { return bool(each.starts_at_s); });
}

std::string queue_table(const std::vector<Standing>& waiters, const Ledger& ledger, const Style& style) {
  if (waiters.empty()) return "nobody waits\n";
  const bool foresees = any_start_is_known(waiters);
  std::vector<Row> rows;
  for (const Standing& waiter : waiters) rows.push_back(waiter_row(waiter, ledger, foresees, style));
  return table(waiter_columns(foresees), rows, style);
}

std::string hosts_queue_table(const Hosts& hosts, const Style& style) {
  const bool foresees = std::ranges::any_of(
      hosts, [](const auto& host) { return host->report && any_start_is_known(host->report->waiters); });
  std::vector<Column> columns = waiter_columns(foresees);
  columns.insert(columns.begin(), {"HOST", Align::left, 8});
  std::vector<Row> rows;
  LabQueue lab;
  std::string troubles;
  for (const auto& host : hosts) {
    if (!host->report) {
      troubles +=
          wrapped(fmt::format("{}: {}", printable(host->name), printable(host->error)), style.width, 2) +
          "\n";
      continue;
    }
    for (const Standing& waiter : host->report->waiters) lab.add(*host, waiter);
  }
  for (const LabWaiter& each : lab.waiters()) {
    Standing shown = *each.nearest;
    shown.reason = printable(shown.reason);
    if (each.hosts > 1) shown.reason = fmt::format("{}: {}", printable(each.at->name), shown.reason);
    rows.push_back(waiter_row(shown, each.at->report->ledger, foresees, style));
    rows.back().insert(rows.back().begin(),
                       {each.hosts > 1 ? counted(each.hosts, "host") : printable(each.at->name)});
  }
  const std::string waiting = rows.empty() ? "nobody waits\n" : table(columns, rows, style);
  return troubles.empty() ? waiting : waiting + "\n" + troubles;
}

}  // namespace berth::render
