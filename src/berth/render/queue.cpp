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

}  // namespace

std::string queue_table(const std::vector<Standing>& waiters, const Ledger& ledger, const Style& style) {
  if (waiters.empty()) return "nobody waits\n";
  const std::vector<Column> columns{{"POS", Align::right},           {"ID", Align::left},
                                    {"USER", Align::left, 8},        {"WAITED", Align::right},
                                    {"REQUEST", Align::left, 12, 2}, {"COMMAND", Align::left, 10, 1},
                                    {"REASON", Align::left, 16}};
  std::vector<Row> rows;
  for (const Standing& waiter : waiters) {
    const Ticket& ticket = waiter.ticket;
    rows.push_back({{std::to_string(waiter.position)},
                    {short_name(ledger, ticket.id)},
                    text_cell(ticket.user),
                    {waited(ticket, style)},
                    text_cell(ticket.request),
                    text_cell(short_command(ticket.command)),
                    {waiter.reason, Tone::waiting}});
  }
  return table(columns, rows, style);
}

}  // namespace berth::render
