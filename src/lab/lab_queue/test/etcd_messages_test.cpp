#include "berth/lab_queue/etcd_messages.h"

#include <doctest/doctest.h>

namespace berth::lab_queue::etcd_messages_test {
namespace {

TEST_CASE("a question to etcd has keys in base64 and numbers as texts") {
  CHECK(question_for_page("/berth/1/", "/berth/1/", 9, 0).body ==
        R"({"key":"L2JlcnRoLzEv","range_end":"L2JlcnRoLzEw","limit":"9"})");
  CHECK(question_for_page("/berth/1/", "/berth/1/a", 9, 7).body ==
        R"({"key":"L2JlcnRoLzEvYQ==","range_end":"L2JlcnRoLzEw","limit":"9","revision":"7"})");
  CHECK(question_for_lease(30).body == R"({"TTL":"30"})");
  CHECK(question_to_renew("7587862094320000011").body == R"({"ID":"7587862094320000011"})");
  CHECK(question_to_change({.conditions = {{"a", 8, LabCondition::Of::changed}}, .puts = {}, .removed = {}})
            .body == R"({"compare":[{"key":"YQ==","target":"MOD","result":"EQUAL","mod_revision":"8"}],)"
                     R"("success":[]})");
  CHECK(question_to_change({.conditions = {{"a", 0}, {"ab", 9'007'199'254'740'993}},
                            .puts = {{"k", "v", "12"}},
                            .removed = {"abc"}})
            .body ==
        R"({"compare":[{"key":"YQ==","target":"CREATE","result":"EQUAL","create_revision":"0"},)"
        R"({"key":"YWI=","target":"CREATE","result":"EQUAL","create_revision":"9007199254740993"}],)"
        R"("success":[{"request_put":{"key":"aw==","value":"dg==","lease":"12"}},)"
        R"({"request_delete_range":{"key":"YWJj"}}]})");
}

TEST_CASE("what etcd answers is read") {
  const auto values =
      read_stored(R"({"header":{"revision":"7"},"kvs":[{"key":"YQ==","value":"AAEC",)"
                  R"("create_revision":"9007199254740993","mod_revision":"5"}],"count":"1"})");
  REQUIRE(values);
  CHECK(values->values ==
        std::vector<StoredValue>{{"a", std::string("\0\1\2", 3), 9'007'199'254'740'993, 5}});
  CHECK(values->revision == 7);
  CHECK(read_stored(R"({"header":{}})")->values.empty());
  const auto made = read_change_answer(R"({"header":{"revision":"8"},"succeeded":true})");
  REQUIRE(made);
  CHECK(made->made);
  CHECK(made->revision == 8);
  const auto refused = read_change_answer(
      R"({"header":{},"responses":[{"response_range":{"kvs":[{"key":"YQ==","create_revision":"3"}]}}]})");
  REQUIRE(refused);
  CHECK(!refused->made);
  CHECK(read_lease(R"({"ID":"12","TTL":"30"})")->ttl_s == 30);
  const auto renewed = read_lease(R"({"result":{"header":{"revision":"7"},"ID":"12","TTL":"30"}})");
  REQUIRE(renewed);
  CHECK(renewed->id == "12");
  CHECK(renewed->revision == 7);
  CHECK(read_etcd_version(R"({"etcdserver":"3.4.23","etcdcluster":"3.4.0"})") == "3.4.23");
}

TEST_CASE("a line of a watch is read") {
  CHECK(question_to_watch("/berth/1/", 12).body ==
        R"({"create_request":{"key":"L2JlcnRoLzEv","range_end":"L2JlcnRoLzEw","start_revision":"12"}})");
  const auto begun = read_etcd_news(R"({"result":{"header":{"revision":"7"},"created":true}})");
  REQUIRE(begun);
  CHECK(begun->changes.empty());
  CHECK(!begun->has_ended);
  const auto news = read_etcd_news(
      R"({"result":{"header":{},"events":[{"kv":{"key":"YQ==","create_revision":"3","mod_revision":"9",)"
      R"("value":"AAEC"}},{"type":"DELETE","kv":{"key":"YQ==","mod_revision":"10"}}]}})");
  REQUIRE(news);
  REQUIRE(news->changes.size() == 2);
  CHECK(news->changes[0].value == StoredValue{"a", std::string("\0\1\2", 3), 3, 9});
  CHECK(!news->changes[0].removed);
  CHECK(news->changes[1].value == StoredValue{"a", "", 0, 10});
  CHECK(news->changes[1].removed);
  CHECK(read_etcd_news(R"({"result":{"canceled":true,"compact_revision":"5"}})")->has_ended);
  for (const char* none :
       {"", "{}", R"({"result":7})", R"({"result":{"events":7}})", R"({"result":{"events":[7]}})",
        R"({"result":{"events":[{"kv":{"key":"YQ==","mod_revision":"1"}}]}})"})
    CHECK_FALSE(read_etcd_news(none));
  CHECK(read_etcd_news(R"({"error":{"code":7,"message":"permission denied"}})").error().message ==
        "etcd says: permission denied");
}

TEST_CASE("a lease that is gone has no time left") {
  CHECK(read_lease(R"({"result":{"ID":"12"}})")->ttl_s == 0);
}

// The answers are those of 3.4.23, 3.5.35, 3.6.16 and 3.7.3; the last two are of a stream.
TEST_CASE("an error is told in etcd's words, however this version of etcd says it") {
  for (const char* text :
       {R"({"error":"etcdserver: user name is empty","message":"etcdserver: user name is empty","code":3})",
        R"({"error":"etcdserver: user name is empty","code":3,"message":"etcdserver: user name is empty"})",
        R"({"code":3,"message":"etcdserver: user name is empty"})",
        R"({"code":3, "message":"etcdserver: user name is empty"})",
        R"({"error":{"grpc_code":3,"http_code":400,"message":"etcdserver: user name is empty"}})",
        R"({"error":{"code":3,"message":"etcdserver: user name is empty"}})"}) {
    CAPTURE(text);
    CHECK(read_stored(text).error().message == "etcd says: etcdserver: user name is empty");
    CHECK(asks_for_user(text));
  }
  // Whatever stands there instead of words is an error too.
  for (const char* text : {R"({"code":3})", R"({"error":{}})", R"({"error":7})", R"({"error":""})"}) {
    CAPTURE(text);
    CHECK(!read_stored(text));
    CHECK(!read_lease(text));
  }
}

TEST_CASE("an answer that is none is an error") {
  for (const char* text : {"", "[]", "{}", "null", R"({"header":{},"kvs":1})", R"({"header":{},"kvs":[{}]})",
                           R"({"header":{},"kvs":[{"key":"YQ==","value":"!","create_revision":"1"}]})"}) {
    CAPTURE(text);
    CHECK(!read_stored(text));
  }
  CHECK(!read_change_answer("{}"));
  CHECK(!read_lease(R"({"result":{}})"));
}

TEST_CASE("what another agent has let etcd forget is forgotten") {
  CHECK(question_to_forget(7).body == R"({"revision":"7"})");
  CHECK(forgetting_fault(R"({"header":{"revision":"9"}})").empty());
  CHECK(forgetting_fault(R"({"error":"etcdserver: mvcc: required revision has been compacted","code":11})")
            .empty());
  CHECK(forgetting_fault(R"({"error":"etcdserver: permission denied","code":7})")
            .contains("permission denied"));
  // As etcd 3.6 says it.
  CHECK(forgetting_fault(R"({"code":7,"message":"etcdserver: permission denied"})")
            .contains("permission denied"));
}

TEST_CASE("a token is one word, and what refuses one says so") {
  CHECK(question_for_token("berth", "a \"b\"").body == R"({"name":"berth","password":"a \"b\""})");
  CHECK(read_etcd_login(R"({"header":{},"token":"abc.12"})") == "abc.12");
  for (const char* none : {"", "{}", R"({"token":""})", R"({"token":"a\r\nHost: b"})", R"({"token":7})"})
    CHECK_FALSE(read_etcd_login(none));
  const auto wrong = read_etcd_login(R"({"error":"etcdserver: authentication failed","code":3})");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message == "etcd says: etcdserver: authentication failed");
  CHECK(refuses_token(R"({"error":"etcdserver: invalid auth token","code":16})"));
  CHECK(refuses_token(R"({"code":16,"message":"etcdserver: invalid auth token"})"));
  CHECK_FALSE(refuses_token(R"({"error":"etcdserver: permission denied","code":7})"));
  CHECK_FALSE(refuses_token(R"({"header":{}})"));
}

}  // namespace
}  // namespace berth::lab_queue::etcd_messages_test
