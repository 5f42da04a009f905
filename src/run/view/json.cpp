#include "berth/view/json.h"

#include <algorithm>
#include <charconv>
#include <concepts>

#include <fmt/format.h>

#include "berth/base/record_fields.h"
#include "berth/device/device_readings.h"
#include "berth/job/job.h"
#include "berth/request/request_fields.h"
#include "berth/verdict/verdict.h"

namespace berth::view {

std::string version_text(int version, VersionForm form) {
  return fmt::format("{}.{}", version / form.major, version % form.major / form.minor);
}

std::optional<int> version_from_text(std::string_view text, VersionForm form) {
  int first = 0;
  int second = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, first);
  if (wrong != std::errc() || dot == end || *dot != '.' || first < 0 || first >= 10'000) return std::nullopt;
  const auto [rest, worse] = std::from_chars(dot + 1, end, second);
  if (worse != std::errc() || rest != end || second < 0 || second >= 10) return std::nullopt;
  return first * form.major + second * form.minor;
}

void JsonReader::mark(std::string_view key, std::string_view what) const {
  if (!has_fault()) *fault_ = fmt::format("{}{}{} {}", place_, key.empty() ? "" : ".", key, what);
}

const Json* JsonReader::find(std::string_view key) const {
  if (has_fault()) return nullptr;
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

void JsonReader::needs(std::string_view key) const {
  if (find(key) == nullptr) mark(key, "is missing");
}

std::optional<std::string> JsonReader::maybe_text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(shortened(value->get_ref<const std::string&>(), kLongestText));
  mark(key, "must be a text");
  return std::nullopt;
}

std::optional<bool> JsonReader::maybe_flag(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  mark(key, "must be true or false");
  return std::nullopt;
}

std::optional<double> JsonReader::maybe_decimal(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  mark(key, "must be a number");
  return std::nullopt;
}

std::optional<std::int64_t> JsonReader::maybe_time(std::string_view key) const {
  const auto value = maybe<std::int64_t>(key);
  if (!value || (*value >= 0 && *value < kLatestSeconds)) return value;
  mark(key, "is no time");
  return std::nullopt;
}

std::optional<JsonReader> JsonReader::maybe_object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return JsonReader(*value, *fault_, place_ + "." + std::string(key));
}

Reading<bool> JsonReader::reading_flag(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr || !value->is_boolean() ? std::nullopt : Reading<bool>(value->get<bool>());
}

Reading<std::string> JsonReader::reading_text(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr || !value->is_string() ? std::nullopt : maybe_text(key);
}

Reading<std::int64_t> JsonReader::reading_time(std::string_view key) const {
  const auto time = reading<std::int64_t>(key);
  return time && *time >= 0 && *time < kLatestSeconds ? time : std::nullopt;
}

JsonReader JsonReader::part(std::string_view key) const {
  static const Json kNothing = Json::object();
  const Json* value = find(key);
  const bool is_object = value != nullptr && value->is_object();
  return {is_object ? *value : kNothing, *fault_, place_ + "." + std::string(key)};
}

std::vector<std::string> JsonReader::texts(std::string_view key) const {
  std::vector<std::string> texts;
  const Json* list = find(key);
  if (list == nullptr) return texts;
  if (!list->is_array() || list->size() > kLongestList) {
    mark(key, "must be a list of texts, and not so long");
    return texts;
  }
  for (const Json& entry : *list) {
    if (!entry.is_string()) {
      mark(key, "must be a list of texts");
      return texts;
    }
    texts.emplace_back(shortened(entry.get_ref<const std::string&>(), kLongestText));
  }
  return texts;
}

DocumentShape shape_of(std::string_view document) {
  DocumentShape shape;
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const char c = document[i];
    if (in_text) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_text = false;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == ',') {
      ++shape.values;
    } else if (c == '{' || c == '[') {
      ++shape.objects;
      shape.levels = std::max(shape.levels, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return shape;
}

Json json_from(std::string_view document) {
  constexpr std::size_t kDeepest = 16;
  return shape_of(document).levels > kDeepest ? Json() : Json::parse(document, nullptr, false);
}

// The facts of a machine in the documents of `berth list` and the agent. hosts_reader.cpp reads
// them.

namespace {

/// A value of a device, as its kind is written.
struct ReadingAsJson {
  FieldKind kind;

  Json operator()(const std::string& text) const { return text_or_null(text); }
  template <std::integral Number>
  Json operator()(Number value) const {
    if constexpr (std::same_as<Number, int>) {
      if (kind == FieldKind::version) return version_text(value, kCapability);
    }
    return value;
  }
  template <Worded Word>
  Json operator()(Word value) const {
    return to_text(value);
  }
  template <class T>
  Json operator()(const Reading<T>& value) const {
    return value ? (*this)(*value) : Json(nullptr);
  }
};

void add_readings(Json& json, const Device& device) {
  for (const DeviceReading& row : device_readings()) {
    const std::string part(part_of(row));
    Json& place = part.empty() ? json : json[part];
    place[std::string(row.name)] = with_value(row, device, ReadingAsJson{row.kind});
  }
}

Json mig_json(const std::optional<MigPlacement>& mig) {
  if (!mig) return nullptr;
  return {{"parent_uuid", mig->parent_uuid},
          {"slot", mig->slot},
          {"gpu_instance", nullable(mig->gpu_instance)},
          {"compute_instance", nullable(mig->compute_instance)}};
}

/// Of several the one for this device. Null: it is of none.
Json lease_json(const Process& process, const Device& device, const Listing& listing) {
  const Facts& facts = listing.facts;
  const auto known = facts.process_leases.find(process.pid);
  if (known == facts.process_leases.end()) return nullptr;
  const Ticket* here = lease_of(process, leases_holding(device, listing.ledger), facts);
  return to_text(here == nullptr ? known->second : here->id);
}

Json process_json(const Process& process, const Device& device, const Listing& listing) {
  return {{"pid", process.pid},
          {"kind", to_text(process.kind)},
          {"used_bytes", nullable(process.used_bytes)},
          {"uid", nullable(process.uid)},
          {"user", text_or_null(process.user)},
          {"command", text_or_null(process.command)},
          {"container", text_or_null(process.container)},
          {"started_at_s", nullable(process.started_at_s)},
          {"ending", process.ending.value_or(false)},
          {"lease", lease_json(process, device, listing)},
          {"assumed", listing.assumed.contains(process.pid)}};
}

Json processes_json(const Device& device, const Listing& listing) {
  if (!device.processes) return nullptr;
  Json list = Json::array();
  for (const Process& process : *device.processes) list.push_back(process_json(process, device, listing));
  return list;
}

Json culprit_json(const Culprit& culprit) {
  return {{"user", text_or_null(culprit.user)},
          {"pid", culprit.pid == 0 ? Json(nullptr) : Json(culprit.pid)},
          {"command", text_or_null(culprit.command)},
          {"since_s", seconds_or_null(culprit.since_s)},
          {"lease", culprit.lease ? Json(to_text(*culprit.lease)) : Json(nullptr)},
          {"note", text_or_null(culprit.note)}};
}

/// For whom it is passed over.
Json passed_over_json(const Device& device, const Facts& facts) {
  Json list = Json::array();
  const auto found = facts.passed_over_for.find(device.uuid);
  if (found == facts.passed_over_for.end()) return list;
  for (const PassedOverFor& each : found->second)
    list.push_back({{"uid", each.uid},
                    {"user", text_or_null(each.user)},
                    {"until_s", seconds_or_null(each.until_s)},
                    {"reason", text_or_null(each.reason)}});
  return list;
}

struct InJson {
  Json operator()(const std::vector<Expression>& conditions) const {
    Json texts = Json::array();
    for (const Expression& condition : conditions) texts.push_back(condition.text());
    return texts;
  }
  Json operator()(Order order) const { return to_text(order); }
  template <class T>
  Json operator()(const std::optional<T>& value) const {
    return nullable(value);
  }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

}  // namespace

Json started(std::string_view kind) {
  return {{"kind", kind}, {"version", 1}};
}

Json taken_at(const Snapshot& snapshot) {
  return static_cast<double>(snapshot.taken_at_ns / 1'000'000) / 1000.0;
}

Json request_json(const Request& request) {
  Json json = Json::object();
  for (const RequestField& field : request_fields()) {
    const std::string_view key = name_in(&RequestField::json, field);
    if (!key.empty()) json[std::string(key)] = with_member(field, request, InJson());
  }
  // Without a share there is nothing to promise; 0 would be a promise.
  if (!request.shared) json["promise_bytes"] = nullptr;
  return json;
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json seconds_or_null(std::int64_t at_s) {
  return at_s == 0 ? Json(nullptr) : Json(at_s);
}

Json verdict_json(const Verdict& verdict) {
  Json culprits = Json::array();
  for (const Culprit& culprit : verdict.culprits) culprits.push_back(culprit_json(culprit));
  return {{"free", verdict.free()},
          {"clause", verdict.failed ? Json(to_text(*verdict.failed)) : Json(nullptr)},
          {"reason", text_or_null(verdict.reason)},
          {"culprits", std::move(culprits)},
          {"more_culprits", verdict.more_culprits},
          {"free_bytes", nullable(verdict.free_bytes)}};
}

Json identity_json(const Device& device) {
  return {{"index", device.index},
          {"label", label(device)},
          {"uuid", text_or_null(device.uuid)},
          {"name", text_or_null(device.name)}};
}

Json device_json(const Device& device, const Verdict* verdict, const Listing& listing,
                 const LeasesByDevice& leases) {
  Json json = identity_json(device);
  add_readings(json, device);
  json["mig"] = mig_json(device.mig);
  json["processes"] = processes_json(device, listing);
  Json ids = Json::array();
  for (const Ticket* ticket : leases.on(device.uuid)) ids.push_back(to_text(ticket->id));
  json["leases"] = std::move(ids);
  const std::vector<const Ticket*> holding = leases_holding(device, leases);
  json["idle"] = nullable(is_idle(device, holding, listing.facts));
  json["idle_since_s"] = nullable(listing.idle.since(device, holding));
  json["passed_over"] = passed_over_json(device, listing.facts);
  json["verdict"] = verdict == nullptr ? Json(nullptr) : verdict_json(*verdict);
  return json;
}

namespace {

Json job_json(const std::optional<TaskNote>& job) {
  if (!job) return nullptr;
  return {{"id", to_text(job->task)},
          {"number", job->task.job},
          {"index", nullable(job->task.index)},
          {"name", text_or_null(job->name)},
          {"note", text_or_null(job->note)}};
}

}  // namespace

Json ticket_json(const Ticket& ticket, std::int64_t booted_at_s) {
  return {{"id", to_text(ticket.id)},
          {"phase", ticket.phase == TicketPhase::granted ? "granted" : "waiting"},
          {"uid", ticket.uid},
          {"user", text_or_null(ticket.user)},
          {"pid", ticket.taker.pid == 0 ? Json(nullptr) : Json(ticket.taker.pid)},
          {"kept", ticket.kept},
          {"job_pid", ticket.job.pid == 0 ? Json(nullptr) : Json(ticket.job.pid)},
          {"slurm_job", ticket.slurm_job == 0 ? Json(nullptr) : Json(ticket.slurm_job)},
          {"asked_at", text_or_null(ticket.origin)},
          {"since_s", seconds_or_null(ticket.since_s)},
          {"time_s", nullable(ticket.time_s)},
          {"yield_s", nullable(ticket.yield_s)},
          {"ending", ticket.ending},
          {"until_s", nullable(said_end_at_s(ticket, booted_at_s))},
          {"count", ticket.count},
          {"shared", ticket.shared},
          {"promise_bytes", ticket.shared ? Json(ticket.promise_bytes) : Json(nullptr)},
          {"devices", ticket.devices},
          {"command", text_or_null(ticket.command)},
          {"note", text_or_null(ticket.note)},
          {"job", job_json(task_note_from_text(ticket.note))},
          {"request", text_or_null(ticket.request)}};
}

Json unlisted_json(const std::vector<Unlisted>& unlisted,
                   std::initializer_list<std::pair<const char*, std::size_t Unlisted::*>> counts) {
  Json list = Json::array();
  for (const Unlisted& rest : unlisted) {
    Json row{{"uid", rest.uid}, {"user", text_or_null(rest.user)}};
    std::size_t sum = 0;
    for (const auto& [name, count] : counts) {
      row[name] = rest.*count;
      sum += rest.*count;
    }
    if (sum > 0) list.push_back(std::move(row));
  }
  return list;
}

Json leases_of(const Ledger& ledger, std::int64_t booted_at_s) {
  Json list = Json::array();
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted) list.push_back(ticket_json(ticket, booted_at_s));
  }
  return list;
}

}  // namespace berth::view
