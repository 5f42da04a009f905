#include "berth/view/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "berth/base/text_match.h"
#include "berth/base/units.h"
#include "berth/view/listing.h"
#include "berth/view/text.h"
#include "berth/view/verdict_text.h"

namespace berth::view {
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

Row waiter_row(const Standing& waiter, const ShortNames& names, bool foresees, const Style& style) {
  const Ticket& ticket = waiter.ticket;
  Row row{{std::to_string(waiter.position)},
          {names.of(ticket.id)},
          text_cell(ticket.user),
          {std::to_string(ticket.taker.pid)},
          {waited(ticket, style)},
          {waiter.behind && !waiter.fills_gap_until_s ? names.of(waiter.behind->id) : std::string(kUnknown)},
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
  const ShortNames names(ledger);
  std::vector<Row> rows;
  for (const Standing& waiter : waiters) rows.push_back(waiter_row(waiter, names, foresees, style));
  return table(waiter_columns(foresees), rows, style) +
         unlisted_lines(ledger.unlisted, &Unlisted::waiting, "request", style);
}

std::vector<Column> lab_waiter_columns(bool foresees, bool lab) {
  std::vector<Column> columns = waiter_columns(foresees);
  if (lab) columns.insert(columns.begin(), {"LAB", Align::right});
  columns.insert(columns.begin(), {"HOST", Align::left, 8});
  return columns;
}

Row lab_waiter_row(const LabWaiter& waiter, const ShortNames& names, bool foresees, bool lab,
                   const Style& style) {
  const std::string host = printable(waiter.at->name);
  const bool is_one = waiter.hosts.size() == 1;
  Standing shown = *waiter.nearest;
  shown.reason = printable(shown.reason);
  if (!is_one) shown.reason = fmt::format("{}: {}", host, shown.reason);
  Row row = waiter_row(shown, names, foresees, style);
  if (lab)
    row.insert(row.begin(), {waiter.position ? std::to_string(*waiter.position) : std::string(kUnknown)});
  row.insert(row.begin(), {is_one ? host : counted(waiter.hosts.size(), "host")});
  return row;
}

std::string hosts_queue_table(const Hosts& hosts, const LabOrder& order, const Style& style) {
  const bool foresees = std::ranges::any_of(
      hosts, [](const auto& host) { return host->report && any_start_is_known(host->report->waiters); });
  const bool lab = !order.standing.empty();
  ShortNamesByLedger names;
  std::vector<Row> rows;
  for (const LabWaiter& each : merged_queue(hosts, order))
    rows.push_back(lab_waiter_row(each, names.of(each.at->report->ledger), foresees, lab, style));
  std::string below;
  const auto add = [&](const std::string& text) { below += wrapped(text, style.width, 2) + "\n"; };
  if (order.outside > 0)
    add(fmt::format("{} in the queue of the lab, not yet in the queue of a host",
                    counted(order.outside, "more request")));
  for (const auto& host : hosts)
    if (!host->report) add(fmt::format("{}: {}", printable(host->name), printable(host->error)));
  const std::string waiting =
      rows.empty() ? "nobody waits\n" : table(lab_waiter_columns(foresees, lab), rows, style);
  return below.empty() ? waiting : waiting + "\n" + below;
}

}  // namespace berth::view
