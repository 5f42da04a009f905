#include "berth/lab_queue/store_admin.h"

#include <doctest/doctest.h>

#include "berth/view/json_value.h"

// The answers are those of etcd 3.4.23, 3.5.16 and, where they differ, 3.6.16, shortened.
namespace berth::lab_queue::store_admin_test {
namespace {

constexpr std::string_view kMembers =
    R"({"header":{"cluster_id":"1445917","member_id":"10276657743932975437","raft_term":"2"},
       "members":[{"ID":"10276657743932975437","name":"one","peerURLs":["http://h1:2380"],"clientURLs":["http://h1:2379"]},
                  {"ID":"7","name":"two","peerURLs":["http://h2:2380"]}]})";
constexpr std::string_view kDenied =
    R"({"error":"etcdserver: permission denied","code":7,"message":"etcdserver: permission denied"})";
constexpr std::string_view kDenied36 = R"({"code":7,"message":"etcdserver: permission denied"})";

TEST_CASE("members, alarms and the number of the etcd are read") {
  const auto members = read_store_members(kMembers);
  REQUIRE(members);
  REQUIRE(members->size() == 2);
  CHECK(members->front().name == "one");
  CHECK(members->front().urls == std::vector<std::string>{"http://h1:2379"});
  CHECK(members->back().urls.empty());
  CHECK(store_cluster_of(kMembers) == "1445917");

  const auto alarms = read_store_alarms(R"({"header":{},"alarms":[{"memberID":"7","alarm":"NOSPACE"}]})");
  REQUIRE(alarms);
  CHECK(*alarms == std::vector<std::string>{"NOSPACE"});
  CHECK(read_store_alarms(R"({"header":{}})")->empty());
}

TEST_CASE("what is no answer of etcd is none, and its errors are told in its words") {
  for (const std::string_view text : {"", "[]", "<html>", "{\"members\":7}", "{\"members\":[]}", "{}"}) {
    CAPTURE(text);
    CHECK(!read_store_members(text));
    CHECK(store_cluster_of(text).empty());
  }
  const auto refused = read_store_members(kDenied);
  REQUIRE(!refused);
  CHECK(refused.error().message.contains("permission denied"));
  CHECK(denies_right(kDenied));
  CHECK(denies_right(kDenied36));
  CHECK(!denies_right(kMembers));
}

TEST_CASE("gauges stand in lines of their own, and what is odd counts as not told") {
  const StoreGauges told = read_store_gauges(
      "# HELP etcd_server_quota_backend_bytes Current backend storage quota size in bytes.\n"
      "# TYPE etcd_server_quota_backend_bytes gauge\n"
      "etcd_server_quota_backend_bytes 2.147483648e+09\n"
      "etcd_mvcc_db_total_size_in_bytes 20480\n"
      "etcd_debugging_mvcc_compact_revision 12\n");
  CHECK(told.quota_bytes == 2147483648);
  CHECK(told.bytes == 20480);
  CHECK(told.compacted == 12);
  const StoreGauges odd = read_store_gauges(
      "etcd_server_quota_backend_bytes NaN\netcd_mvcc_db_total_size_in_bytes -4\n"
      "etcd_debugging_mvcc_compact_revision 1e300");
  CHECK(odd.quota_bytes == 0);
  CHECK(odd.bytes == 0);
  CHECK(odd.compacted == 0);
  CHECK(read_store_gauges("").bytes == 0);
}

TEST_CASE("what another agent has let etcd forget is forgotten") {
  CHECK(forgetting_fault(R"({"header":{"revision":"9"}})").empty());
  CHECK(forgetting_fault(R"({"error":"etcdserver: mvcc: required revision has been compacted","code":11})")
            .empty());
  CHECK(forgetting_fault(kDenied).contains("permission denied"));
  CHECK(forgetting_fault(kDenied36).contains("permission denied"));
}

TEST_CASE("what etcd is asked for is as its gateway wants it") {
  const auto parsed = [](const std::string& text) { return view::Json::parse(text); };
  CHECK(parsed(store_compaction_json(7)) == view::Json{{"revision", "7"}});
}

}  // namespace
}  // namespace berth::lab_queue::store_admin_test
