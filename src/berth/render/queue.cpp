#include "berth/render/queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/core/units.h"
#include "berth/render/explain.h"
#include "berth/render/table.h"
#include "berth/render/waiting.h"

namespace berth::render {
namespace {

Cell text_cell(std::string_view text) {
  return {text.empty() ? std::string(kUnknown) : printable(text)};
}

std::string waited(const Ticket& ticket, const Style& style) {
  return duration_for_people(std::max<std::int64_t>(0, style.now_s - ticket.joined_s));
}

}  // namespace

std::string reason(const Waiter& waiter, const Snapshot& snapshot, const Style& style) {
  if (waiter.stopped) return "stopped: the others pass it over until it goes on";
  if (waiter.behind != nullptr) {
    const std::string command = short_command(waiter.behind->command);
    return fmt::format("behind {}{}", printable(waiter.behind->user),
                       command.empty() ? std::string() : fmt::format(" ({})", command));
  }
  const auto free = static_cast<std::size_t>(std::ranges::count_if(waiter.verdicts, &Verdict::free));
  const std::string missing = what_is_missing(waiter.verdicts, snapshot, style);
  // A ticket says of conditions on readings only in words that it has them.
  return free >= waiter.ticket->count ? missing + "; it waits for its own conditions" : missing;
}

std::vector<ToldWaiter> told_waiters(const Queue& queue, const Style& style) {
  std::vector<ToldWaiter> told;
  for (const Waiter& waiter : queue.waiters) {
    told.push_back({.ticket = *waiter.ticket,
                    .position = waiter.position,
                    .behind = waiter.behind == nullptr ? std::nullopt : std::optional(waiter.behind->id),
                    .stopped = waiter.stopped,
                    .reason = reason(waiter, queue.snapshot, style)});
  }
  return told;
}

std::string queue_table(const Queue& queue, const Style& style) {
  if (queue.waiters.empty()) return "nobody waits\n";
  const std::vector<Column> columns{{"POS", Align::right},           {"ID", Align::left},
                                    {"USER", Align::left, 8},        {"WAITED", Align::right},
                                    {"REQUEST", Align::left, 12, 2}, {"COMMAND", Align::left, 10, 1},
                                    {"REASON", Align::left, 16}};
  std::vector<Row> rows;
  for (const Waiter& waiter : queue.waiters) {
    const Ticket& ticket = *waiter.ticket;
    rows.push_back({{std::to_string(waiter.position)},
                    {short_name(queue.ledger, ticket.id)},
                    text_cell(ticket.user),
                    {waited(ticket, style)},
                    text_cell(ticket.request),
                    text_cell(short_command(ticket.command)),
                    {reason(waiter, queue.snapshot, style), Tone::waiting}});
  }
  return table(columns, rows, style);
}

}  // namespace berth::render
