#include "berth/lab_queue/store_admin.h"

#include "berth/base/printable.h"
#include "berth/lab_queue/store_json.h"

namespace berth::lab_queue {
namespace {

constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kMostClientUrls = 16;
constexpr double kLargestGauge = 1e18;

/// Of the line "NAME VALUE"; 0 where there is none.
std::uint64_t gauge(std::string_view metrics, std::string_view name) {
  for (std::size_t at = metrics.find(name); at != std::string_view::npos; at = metrics.find(name, at + 1)) {
    const bool begins_line = at == 0 || metrics[at - 1] == '\n';
    const std::size_t after = at + name.size();
    if (!begins_line || after >= metrics.size() || metrics[after] != ' ') continue;
    const std::string_view rest = metrics.substr(after + 1);
    const view::Json value = view::Json::parse(rest.substr(0, rest.find('\n')), nullptr, false);
    const double number = value.is_number() ? value.get<double>() : 0;
    return number > 0 && number < kLargestGauge ? static_cast<std::uint64_t>(number) : 0;
  }
  return 0;
}

/// The objects of a list; none where there is none.
std::vector<view::Json> objects_at(const view::Json& object, std::string_view key) {
  const auto list = object.find(key);
  std::vector<view::Json> objects;
  if (list == object.end() || !list->is_array()) return objects;
  for (const view::Json& each : *list)
    if (each.is_object() && objects.size() < kMostMembers) objects.push_back(each);
  return objects;
}

}  // namespace

StoreGauges read_store_gauges(std::string_view metrics) {
  return {gauge(metrics, "etcd_mvcc_db_total_size_in_bytes"),
          gauge(metrics, "etcd_server_quota_backend_bytes"),
          gauge(metrics, "etcd_debugging_mvcc_compact_revision")};
}

Result<std::vector<StoreMember>> read_store_members(std::string_view json) {
  BERTH_LET(const auto answer, store_answer(json));
  std::vector<StoreMember> members;
  for (const view::Json& each : objects_at(answer, "members")) {
    StoreMember member{printable(text_at(each, "name")), {}};
    const auto urls = each.find("clientURLs");
    if (urls != each.end() && urls->is_array()) {
      for (const view::Json& url : *urls)
        if (url.is_string() && member.urls.size() < kMostClientUrls)
          member.urls.push_back(printable(url.get<std::string>()));
    }
    members.push_back(std::move(member));
  }
  if (members.empty()) return is_not_etcd();
  return members;
}

Result<std::vector<std::string>> read_store_alarms(std::string_view json) {
  BERTH_LET(const auto answer, store_answer(json));
  std::vector<std::string> alarms;
  for (const view::Json& each : objects_at(answer, "alarms"))
    alarms.push_back(printable(text_at(each, "alarm")));
  return alarms;
}

std::string store_cluster_of(std::string_view json) {
  const auto answer = store_answer(json);
  if (!answer) return "";
  const auto header = answer->find("header");
  return header != answer->end() && header->is_object() ? text_at(*header, "cluster_id") : "";
}

bool denies_right(std::string_view json) {
  return error_told(json).contains("permission denied");
}

std::string forgetting_fault(std::string_view json) {
  const std::string fault = error_told(json);
  return fault.contains("has been compacted") ? "" : fault;
}

std::string store_compaction_json(std::uint64_t revision) {
  return on_one_line({{"revision", std::to_string(revision)}});
}

}  // namespace berth::lab_queue
