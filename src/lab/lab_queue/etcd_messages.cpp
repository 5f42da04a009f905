#include "berth/lab_queue/etcd_messages.h"

#include <algorithm>
#include <charconv>
#include <variant>

#include "berth/base/text.h"
#include "berth/lab_queue/model/lab_copy.h"
#include "berth/queue/schedule.h"
#include "berth/view/json.h"

namespace berth::lab_queue {
namespace {

using view::Json;

constexpr std::size_t kLongestStoreToken = 4096;

EtcdQuestion question(std::string_view what, const Json& body) {
  return {fmt::format("/v3/{}", what), body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

Json range_of_key(std::string_view key) {
  return {{"key", in_base64(key)}};
}

Json range_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  end.back() = static_cast<char>(end.back() + 1);
  return {{"key", in_base64(prefix)}, {"range_end", in_base64(end)}};
}

/// "" where there is none.
std::string text_at(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

/// 0 where there is none.
std::uint64_t number_at(const Json& object, std::string_view key) {
  const std::string text = text_at(object, key);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::unexpected<Error> is_not_etcd() {
  return fail(ErrorCode::failure, "what it answers is not etcd's");
}

/// "": it tells no error. Up to 3.5 the gateway of etcd says it in `error`; from 3.6 on in
/// `message`, beside its `code`. In a stream all versions say it in the `message` of an object
/// `error`.
std::string error_in(const Json& answer) {
  const auto error = answer.find("error");
  if (error != answer.end())
    return error->is_object() ? text_at(*error, "message") : text_at(answer, "error");
  return answer.contains("code") ? text_at(answer, "message") : "";
}

Result<Json> etcd_answer(std::string_view json) {
  Json parsed = view::json_from(json);
  if (!parsed.is_object()) return is_not_etcd();
  if (const std::string error = error_in(parsed); !error.empty())
    return fail(ErrorCode::failure, "etcd says: {}", printable(error));
  return parsed;
}

/// The error that the answer tells. "": it tells none.
std::string error_told(std::string_view json) {
  const auto answer = etcd_answer(json);
  return answer ? "" : answer.error().message;
}

// Without the right to read, etcd's answer is empty.
Result<std::uint64_t> revision_of(const Json& answer) {
  const auto header = answer.find("header");
  if (header != answer.end() && header->is_object()) return number_at(*header, "revision");
  return fail(ErrorCode::failure, "its answer has no header; does the user of --store have its role?");
}

Result<StoredValue> stored_value_of(const Json& pair) {
  auto key = out_of_base64(text_at(pair, "key"));
  auto value = out_of_base64(text_at(pair, "value"));
  if (!pair.is_object() || !key || !value) return is_not_etcd();
  LabValue read = read_stored_text(*key, *std::move(value));
  return StoredValue{*std::move(key), std::move(read), number_at(pair, "create_revision"),
                     number_at(pair, "mod_revision")};
}

Result<ToldChange> change_of(const Json& event) {
  const auto pair = event.find("kv");
  if (pair == event.end()) return is_not_etcd();
  BERTH_LET(auto value, stored_value_of(*pair));
  const bool removed = text_at(event, "type") == "DELETE";
  if (value.changed == 0 || (value.created == 0 && !removed)) return is_not_etcd();
  return ToldChange{std::move(value), removed};
}

}  // namespace

EtcdQuestion question_for_key(std::string_view key) {
  return question("kv/range", range_of_key(key));
}

EtcdQuestion question_for_page(std::string_view prefix, std::string_view from, std::size_t most,
                               std::uint64_t revision) {
  Json range = range_of_prefix(prefix);
  range["key"] = in_base64(from);
  range["limit"] = std::to_string(most);
  if (revision != 0) range["revision"] = std::to_string(revision);
  return question("kv/range", range);
}

EtcdQuestion question_what_changed(std::string_view prefix, std::uint64_t revision) {
  Json range = range_of_prefix(prefix);
  range["min_mod_revision"] = std::to_string(revision + 1);
  range["keys_only"] = true;
  return question("kv/range", range);
}

EtcdQuestion question_to_watch(std::string_view prefix, std::uint64_t revision) {
  Json wanted = range_of_prefix(prefix);
  wanted["start_revision"] = std::to_string(revision);
  return question("watch", {{"create_request", wanted}});
}

EtcdQuestion question_to_change(const LabChange& change) {
  Json compare = Json::array();
  for (const LabCondition& each : change.conditions) {
    const bool of_making = each.of == LabCondition::Of::created;
    compare.push_back({{"key", in_base64(each.key)},
                       {"target", of_making ? "CREATE" : "MOD"},
                       {"result", "EQUAL"},
                       {of_making ? "create_revision" : "mod_revision", std::to_string(each.revision)}});
  }
  Json success = Json::array();
  for (const LabChange::Put& each : change.puts) {
    Json put{{"key", in_base64(each.key)}, {"value", in_base64(stored_text(each.value))}};
    if (!each.lease.empty()) put["lease"] = each.lease;
    success.push_back({{"request_put", put}});
  }
  for (const std::string& key : change.removed)
    success.push_back({{"request_delete_range", range_of_key(key)}});
  return question("kv/txn", {{"compare", compare}, {"success", success}});
}

EtcdQuestion question_to_forget(std::uint64_t revision) {
  return question("kv/compaction", {{"revision", std::to_string(revision)}});
}

EtcdQuestion question_for_lease(std::int64_t ttl_s) {
  return question("lease/grant", {{"TTL", std::to_string(ttl_s)}});
}

EtcdQuestion question_to_renew(std::string_view lease) {
  return question("lease/keepalive", {{"ID", lease}});
}

EtcdQuestion question_for_token(std::string_view user, std::string_view password) {
  return question("auth/authenticate", {{"name", user}, {"password", password}});
}

Result<StoredRange> read_stored(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  StoredRange range{.count = number_at(answer, "count")};
  BERTH_LET(range.revision, revision_of(answer));
  const auto list = answer.find("kvs");
  if (list == answer.end()) return range;
  if (!list->is_array()) return is_not_etcd();
  for (const Json& each : *list) {
    BERTH_LET(auto value, stored_value_of(each));
    if (value.created == 0) return is_not_etcd();
    range.values.push_back(std::move(value));
  }
  return range;
}

Result<EtcdNews> read_etcd_news(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  const auto result = answer.find("result");
  if (result == answer.end() || !result->is_object()) return is_not_etcd();
  EtcdNews news;
  const auto ended = result->find("canceled");
  news.has_ended = ended != result->end() && *ended == true;
  const auto events = result->find("events");
  if (events == result->end()) return news;
  if (!events->is_array()) return is_not_etcd();
  for (const Json& event : *events) {
    BERTH_LET(auto change, change_of(event));
    news.changes.push_back(std::move(change));
  }
  return news;
}

Result<ChangeAnswer> read_change_answer(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  ChangeAnswer change;
  BERTH_LET(change.revision, revision_of(answer));
  const auto made = answer.find("succeeded");
  change.made = made != answer.end() && *made == true;
  return change;
}

Result<EtcdLease> read_lease(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  // A renewal is answered in a stream.
  const auto result = answer.find("result");
  const Json& told = result == answer.end() ? answer : *result;
  EtcdLease lease{text_at(told, "ID"), static_cast<std::int64_t>(number_at(told, "TTL")),
                  revision_of(told).value_or(0)};
  if (lease.id.empty() || lease.id == "0") return fail(ErrorCode::failure, "it answers with no lease");
  return lease;
}

Result<std::string> read_etcd_version(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  return printable(text_at(answer, "etcdserver"));
}

Result<std::string> read_etcd_login(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  const std::string token = text_at(answer, "token");
  // It becomes a line of a request.
  const bool is_word = !token.empty() && token.size() <= kLongestStoreToken &&
                       std::ranges::all_of(token, [](char each) { return each > ' ' && each < '\x7f'; });
  if (!is_word) return fail(ErrorCode::failure, "it answers with no token");
  return token;
}

std::string forgetting_fault(std::string_view json) {
  const std::string fault = error_told(json);
  return fault.contains("has been compacted") ? "" : fault;
}

bool refuses_token(std::string_view json) {
  const std::string said = error_told(json);
  return said.contains("invalid auth token") || said.contains("revision of auth store is old");
}

bool asks_for_user(std::string_view json) {
  return error_told(json).contains("user name is empty");
}

bool asks_nobody_for_password(std::string_view json) {
  return error_told(json).contains("authentication is not enabled");
}

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
