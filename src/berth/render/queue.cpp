#include "berth/render/queue.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

std::string queue_table(const std::vector<Standing>& waiters, const Ledger& ledger, const Style& style) {
  if (waiters.empty()) return "nobody waits\n";
  std::vector<Column> columns{{"POS", Align::right},           {"ID", Align::left},
                              {"USER", Align::left, 8},        {"PID", Align::right, 0, 3},
                              {"WAITED", Align::right},        {"BEHIND", Align::left, 0, 4},
                              {"REQUEST", Align::left, 12, 2}, {"COMMAND", Align::left, 10, 1},
                              {"REASON", Align::left, 16}};
  const bool foresees =
      std::ranges::any_of(waiters, [](const Standing& each) { return bool(each.starts_at_s); });
  if (foresees) columns.insert(columns.begin() + kAfterWaited, {"START", Align::right});
  std::vector<Row> rows;
  for (const Standing& waiter : waiters) {
    const Ticket& ticket = waiter.ticket;
    rows.push_back({{std::to_string(waiter.position)},
                    {short_name(ledger, ticket.id)},
                    text_cell(ticket.user),
                    {std::to_string(ticket.pid)},
                    {waited(ticket, style)},
                    {waiter.behind ? short_name(ledger, waiter.behind->id) : std::string(kUnknown)},
                    text_cell(ticket.request),
                    {short_noted_command(ticket)},
                    {waiter.reason, Tone::waiting}});
    if (foresees) {
      std::string start = clock_time(waiter.starts_at_s.value_or(0), style);
      rows.back().insert(rows.back().begin() + kAfterWaited,
                         {start.empty() ? std::string(kUnknown) : std::move(start)});
    }
  }
  return table(columns, rows, style);
}

}  // namespace berth::render
