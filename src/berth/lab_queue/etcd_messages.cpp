#include "berth/lab_queue/etcd_messages.h"

#include <algorithm>
#include <variant>

#include "berth/base/base64.h"
#include "berth/base/printable.h"
#include "berth/lab_queue/etcd_json.h"
#include "berth/queue/orders.h"
#include "berth/view/json_reader.h"

namespace berth::lab_queue {
namespace {

constexpr std::size_t kLongestStoreToken = 4096;

// Without the right to read, etcd's answer is empty.
Result<void> has_header(const view::Json& answer) {
  const auto header = answer.find("header");
  if (header != answer.end() && header->is_object()) return {};
  return fail(ErrorCode::failure, "its answer has no header; does the user of --store have its role?");
}

Result<StoredValue> stored_value_of(const view::Json& pair) {
  if (!pair.is_object()) return is_not_etcd();
  auto key = out_of_base64(text_at(pair, "key"));
  auto value = out_of_base64(text_at(pair, "value"));
  if (!key || !value) return is_not_etcd();
  return StoredValue{*std::move(key), *std::move(value), number_at(pair, "create_revision"),
                     number_at(pair, "mod_revision")};
}

Result<std::vector<StoredValue>> values_of(const view::Json& range) {
  std::vector<StoredValue> values;
  const auto list = range.find("kvs");
  if (list == range.end()) return values;
  if (!list->is_array()) return is_not_etcd();
  for (const view::Json& each : *list) {
    BERTH_LET(auto value, stored_value_of(each));
    if (value.created == 0) return is_not_etcd();
    values.push_back(std::move(value));
  }
  return values;
}

std::uint64_t revision_of(const view::Json& answer) {
  return number_at(answer.at("header"), "revision");
}

Result<EtcdNews::Change> change_of(const view::Json& event) {
  const auto pair = event.is_object() ? event.find("kv") : event.end();
  if (!event.is_object() || pair == event.end()) return is_not_etcd();
  BERTH_LET(auto value, stored_value_of(*pair));
  const bool removed = text_at(event, "type") == "DELETE";
  if (value.changed == 0 || (value.created == 0 && !removed)) return is_not_etcd();
  return EtcdNews::Change{std::move(value), removed};
}

Result<EtcdLease> lease_in(const view::Json& object) {
  EtcdLease lease{text_at(object, "ID"), static_cast<std::int64_t>(number_at(object, "TTL")), 0};
  if (lease.id.empty() || lease.id == "0") return fail(ErrorCode::failure, "it answers with no lease");
  return lease;
}

std::optional<std::vector<std::string>> names_at(const view::Json& object, std::string_view key) {
  const auto list = object.find(key);
  if (list == object.end() || !list->is_array() || list->size() > kMostHostsOfRequest) return std::nullopt;
  std::vector<std::string> names;
  for (const view::Json& each : *list) {
    if (!each.is_string()) return std::nullopt;
    names.push_back(each.get<std::string>());
  }
  return names;
}

}  // namespace

std::string one_key_json(std::string_view key) {
  return on_one_line(request_of_range(key));
}

std::string page_json(std::string_view prefix, std::string_view from, std::size_t most,
                      std::uint64_t revision) {
  view::Json range = request_of_prefix(prefix);
  range["key"] = in_base64(from);
  range["limit"] = std::to_string(most);
  if (revision != 0) range["revision"] = std::to_string(revision);
  return on_one_line(range);
}

std::string changed_since_json(std::string_view prefix, std::uint64_t revision) {
  view::Json range = request_of_prefix(prefix);
  range["min_mod_revision"] = std::to_string(revision + 1);
  range["keys_only"] = true;
  return on_one_line(range);
}

std::string changes_with_prefix_json(std::string_view prefix, std::uint64_t revision) {
  view::Json wanted = request_of_prefix(prefix);
  wanted["start_revision"] = std::to_string(revision);
  return on_one_line({{"create_request", wanted}});
}

std::string etcd_change_json(const LabChange& change) {
  view::Json compare = view::Json::array();
  for (const LabCondition& each : change.conditions) {
    const bool of_making = each.of == LabCondition::Of::created;
    compare.push_back({{"key", in_base64(each.key)},
                       {"target", of_making ? "CREATE" : "MOD"},
                       {"result", "EQUAL"},
                       {of_making ? "create_revision" : "mod_revision", std::to_string(each.revision)}});
  }
  view::Json success = view::Json::array();
  for (const LabChange::Put& each : change.puts) {
    view::Json put{{"key", in_base64(each.key)}, {"value", in_base64(stored_text(each))}};
    if (!each.lease.empty()) put["lease"] = each.lease;
    success.push_back({{"request_put", put}});
  }
  for (const std::string& key : change.removed)
    success.push_back({{"request_delete_range", request_of_range(key)}});
  return on_one_line({{"compare", compare}, {"success", success}});
}

std::string lease_grant_json(std::int64_t ttl_s) {
  return on_one_line({{"TTL", std::to_string(ttl_s)}});
}

std::string lease_renewal_json(std::string_view lease) {
  return on_one_line({{"ID", lease}});
}

Result<StoredRange> read_stored(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  BERTH_DO(has_header(answer));
  BERTH_LET(auto values, values_of(answer));
  return StoredRange{std::move(values), revision_of(answer), number_at(answer, "count")};
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
  for (const view::Json& event : *events) {
    BERTH_LET(auto change, change_of(event));
    news.changes.push_back(std::move(change));
  }
  return news;
}

Result<ChangeAnswer> read_change_answer(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  BERTH_DO(has_header(answer));
  ChangeAnswer change;
  const auto made = answer.find("succeeded");
  change.made = made != answer.end() && made->is_boolean() && made->get<bool>();
  change.revision = revision_of(answer);
  return change;
}

Result<EtcdLease> read_granted_lease(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  return lease_in(answer);
}

Result<EtcdLease> read_renewed_lease(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  const auto result = answer.find("result");
  if (result == answer.end() || !result->is_object()) return is_not_etcd();
  BERTH_LET(auto lease, lease_in(*result));
  if (has_header(*result)) lease.revision = revision_of(*result);
  return lease;
}

Result<std::string> read_etcd_version(std::string_view json) {
  BERTH_LET(const auto answer, etcd_answer(json));
  return printable(text_at(answer, "etcdserver"));
}

std::string etcd_compaction_json(std::uint64_t revision) {
  return on_one_line({{"revision", std::to_string(revision)}});
}

std::string forgetting_fault(std::string_view json) {
  const std::string fault = error_told(json);
  return fault.contains("has been compacted") ? "" : fault;
}

std::string etcd_login_json(std::string_view user, std::string_view password) {
  return on_one_line({{"name", user}, {"password", password}});
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

/// Under the key of its order. Absent where there is none.
void put_number(view::Json& json, const std::optional<OrderNumber>& number) {
  if (number) json[std::string(row_of(number->order).keys.number)] = number->value;
}

std::optional<OrderNumber> number_in(const view::Json& json) {
  for (const OrderRow& row : order_rows()) {
    if (!has_numbers(row.order)) continue;
    const auto number = json.find(row.keys.number);
    if (number != json.end() && number->is_number_integer())
      return OrderNumber{row.order, number->get<std::int64_t>()};
  }
  return std::nullopt;
}

/// nullopt: there is none, or it is no such number.
template <class T>
std::optional<T> count_at(const view::Json& json, std::string_view key) {
  const auto number = json.find(key);
  if (number == json.end() || !number->is_number_unsigned()) return std::nullopt;
  return number->get<T>();
}

/// An object that is not nested deeply. Null: it is none.
view::Json object_in(std::string_view text) {
  if (view::shape_of(text).levels > kDeepestOfStore) return nullptr;
  view::Json json = view::Json::parse(text, nullptr, false);
  return json.is_object() ? json : view::Json(nullptr);
}

}  // namespace

std::string lab_ticket_json(const LabTicket& ticket) {
  view::Json json{{"home", ticket.home}, {"uid", ticket.uid}, {"lane", ticket.lane}, {"gpus", ticket.gpus}};
  put_number(json, ticket.number);
  if (ticket.most) json["most"] = *ticket.most;
  json["asked_at"] = ticket.origin;
  json["hosts"] = ticket.hosts;
  json["joined"] = ticket.joined;
  return on_one_line(json);
}

std::optional<LabTicket> read_lab_ticket(std::string_view id, const StoredValue& stored) {
  const view::Json json = object_in(stored.value);
  if (json.is_null()) return std::nullopt;
  auto hosts = names_at(json, "hosts");
  auto joined = names_at(json, "joined");
  const auto uid = count_at<std::uint32_t>(json, "uid");
  const auto lane = count_at<unsigned>(json, "lane");
  if (!uid || !lane || !hosts || !joined) return std::nullopt;
  return LabTicket{.id = std::string(id),
                   .order = stored.created,
                   .home = text_at(json, "home"),
                   .uid = *uid,
                   .lane = *lane,
                   .gpus = count_at<unsigned>(json, "gpus").value_or(1),
                   .number = number_in(json),
                   .most = count_at<unsigned>(json, "most"),
                   .origin = text_at(json, "asked_at"),
                   .hosts = *std::move(hosts),
                   .joined = *std::move(joined)};
}

std::string lab_start_json(const LabStart& start) {
  view::Json json{{"host", start.host}, {"pid", start.pid}, {"uid", start.uid}, {"gpus", start.gpus}};
  put_number(json, start.number);
  return on_one_line(json);
}

std::string stored_text(const LabChange::Put& put) {
  if (const auto* ticket = std::get_if<LabTicket>(&put.value)) return lab_ticket_json(*ticket);
  if (const auto* start = std::get_if<LabStart>(&put.value)) return lab_start_json(*start);
  return std::get<std::string>(put.value);
}

LabStart read_lab_start(std::string_view text) {
  const view::Json json = object_in(text);
  if (json.is_null()) return {};
  return {.host = text_at(json, "host"),
          .pid = static_cast<std::int64_t>(count_at<std::uint32_t>(json, "pid").value_or(0)),
          .uid = count_at<std::uint32_t>(json, "uid").value_or(0),
          .gpus = count_at<unsigned>(json, "gpus").value_or(0),
          .number = number_in(json)};
}

}  // namespace berth::lab_queue
