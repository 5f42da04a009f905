#include "berth/lab_queue/lab_codec.h"

#include <algorithm>
#include <variant>

#include "berth/lab_queue/model/lab_keys.h"
#include "berth/queue/order_table.h"
#include "berth/view/json_reader.h"

namespace berth::lab_queue {
namespace {

using view::Json;

/// Under the key of its order. Absent where there is none.
void put_number(Json& json, const std::optional<OrderNumber>& number) {
  if (number) json[std::string(row_of(number->order).keys.number)] = number->value;
}

std::optional<OrderNumber> number_in(const view::JsonReader& reader) {
  for (const OrderRow& row : order_rows()) {
    if (!has_numbers(row.order)) continue;
    if (const auto number = reader.reading<std::int64_t>(row.keys.number))
      return OrderNumber{row.order, *number};
  }
  return std::nullopt;
}

std::string ticket_text(const LabTicket& ticket) {
  Json json{{"home", ticket.home}, {"uid", ticket.uid}, {"lane", ticket.lane}, {"gpus", ticket.gpus}};
  put_number(json, ticket.number);
  if (ticket.most) json["most"] = *ticket.most;
  json["asked_at"] = ticket.origin;
  json["hosts"] = ticket.hosts;
  json["joined"] = ticket.joined;
  if (!ticket.awaited) json["unawaited"] = true;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// nullopt: it is no ticket.
std::optional<LabTicket> read_ticket(std::string_view text) {
  const Json json = view::json_from(text);
  std::string fault;
  const view::JsonReader reader(json, fault, "ticket");
  for (const char* list : {"hosts", "joined"}) reader.needs(list);
  LabTicket ticket{.id = {},
                   .home = reader.reading_text("home").value_or(""),
                   .uid = reader.needed<std::uint32_t>("uid"),
                   .lane = reader.needed<unsigned>("lane"),
                   .gpus = reader.reading<unsigned>("gpus").value_or(1),
                   .number = number_in(reader),
                   .most = reader.reading<unsigned>("most"),
                   .origin = reader.reading_text("asked_at").value_or(""),
                   .hosts = reader.texts("hosts"),
                   .joined = reader.texts("joined"),
                   .awaited = !reader.reading_flag("unawaited").value_or(false)};
  if (reader.has_fault() || std::max(ticket.hosts.size(), ticket.joined.size()) > kMostHostsOfRequest)
    return std::nullopt;
  return ticket;
}

std::string start_text(const LabStart& start) {
  Json json{{"host", start.host}, {"pid", start.pid}, {"uid", start.uid}, {"gpus", start.gpus}};
  put_number(json, start.number);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Without a host: it is none.
LabStart read_start(std::string_view text) {
  const Json json = view::json_from(text);
  std::string fault;
  const view::JsonReader reader(json, fault, "start");
  return {.host = reader.reading_text("host").value_or(""),
          .pid = reader.reading<std::uint32_t>("pid").value_or(0),
          .uid = reader.reading<std::uint32_t>("uid").value_or(0),
          .gpus = reader.reading<unsigned>("gpus").value_or(0),
          .number = number_in(reader)};
}

}  // namespace

std::string stored_text(const LabValue& value) {
  if (const auto* ticket = std::get_if<LabTicket>(&value)) return ticket_text(*ticket);
  if (const auto* start = std::get_if<LabStart>(&value)) return start_text(*start);
  return std::get<std::string>(value);
}

LabValue read_stored_text(std::string_view key, std::string text) {
  if (key.starts_with(kLabStarts)) return read_start(text);
  if (key.starts_with(kLabTickets))
    if (auto ticket = read_ticket(text)) return *std::move(ticket);
  return text;
}

}  // namespace berth::lab_queue
