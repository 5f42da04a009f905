#include "berth/hub/hub_pages.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"

namespace berth::hub::hub_pages_test {
namespace {

Host up(const std::string& name) {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(2);
  report->verdicts = judge(berth::Request(), {}, report->facts).value();
  return {name, "http://" + name, "", 100, std::move(report)};
}

Host never_seen() {
  return {.name = "a", .error = std::string(kNotAskedYet)};
}

http::Response answer_of(const Host& host) {
  const std::string entry = view::host_json(host);
  const std::string_view entries[]{entry};
  return {.status = 200, .body = view::hosts_json({}, entries, {})};
}

TEST_CASE("a good answer is taken, under the name and the address that the hub knows") {
  Host before = never_seen();
  before.url = "http://10.0.0.1";
  const Host after = after_asking(before, answer_of(up("what it calls itself")), 200);
  CHECK(after.is_up());
  CHECK(after.name == "a");
  CHECK(after.url == "http://10.0.0.1");
  CHECK(after.seen_s == 200);
  REQUIRE(after.report);
  CHECK(after.report->verdicts.size() == 2);
}

TEST_CASE("where there is no answer, or none that can be read, the last one stays with its time") {
  const Host before = up("a");
  const Result<http::Response> none = fail(ErrorCode::failure, "nobody listens");
  for (const auto& [answer, words] :
       {std::pair{none, "nobody listens"},
        std::pair{Result<http::Response>(http::Response{.status = 200, .body = "x"}), "not JSON"},
        std::pair{Result<http::Response>(http::Response{.status = 401}), "wants a token"},
        std::pair{Result<http::Response>(http::Response{.status = 404}), "start `berth serve`"},
        std::pair{Result<http::Response>(http::Response{.status = 421}), "addresses only"}}) {
    const Host after = after_asking(before, answer, 200);
    CHECK(!after.is_up());
    CHECK(after.error.find(words) != std::string::npos);
    CHECK(after.seen_s == 100);
    CHECK(after.report == before.report);
  }
}

TEST_CASE("unchanged is good news of a host that is up, and means nothing of another") {
  CHECK(after_asking(up("a"), http::Response{.status = 304}, 200).seen_s == 200);
  CHECK(!after_asking(never_seen(), http::Response{.status = 304}, 200).is_up());
}

TEST_CASE("an agent whose driver fails is reached, and its host is down in its words") {
  const Host told{.name = "x", .error = "no driver here"};
  const Host after = after_asking(up("a"), answer_of(told), 200);
  CHECK(after.error == "no driver here");
  CHECK(after.seen_s == 100);
  CHECK(after.report);
}

TEST_CASE("a hub tells of every host, and is ready when each was asked") {
  const auto page = [](const http::Published& published, const std::string& path) {
    return *published.questions.at(path)({}).text;
  };
  std::vector<agent::PostedHost> posted;
  for (const Host& host : {up("b"), never_seen()})
    posted.push_back(agent::post(host, http::make_part(view::host_json(host)), posted.size() + 1));
  const http::Published before = publish_hub(posted, {.number = 9, .time_s = 200}, "hub", nullptr);
  CHECK(before.number == 9);
  CHECK(before.pages.at("/readyz").status == 503);
  CHECK(before.pages.at("/api/v1/health").text->find("\"status\":\"stale\"") != std::string::npos);
  CHECK(page(before, "/cluster_status").starts_with("[{\"hostname\":\"b\",\"gpus\":[{"));
  CHECK(page(before, "/cluster_status").find("{\"error\":\"a: it has not been asked yet\"}") !=
        std::string::npos);
  CHECK(page(before, "/metrics").find("berth_host_up{host=\"a\"} 0\n") != std::string::npos);
  Host down = never_seen();
  down.error = "nobody listens";
  posted[1] = agent::post(down, http::make_part(view::host_json(down)), 10);
  CHECK(publish_hub(posted, {.number = 11}, "hub", nullptr).pages.at("/readyz").status == 200);
}

TEST_CASE("what grows beyond twice its source is a fault of the agent") {
  std::string processes;
  for (int i = 1; i < 5000; ++i) processes += "{\"pid\":" + std::to_string(i) + "},";
  processes += "{\"pid\":5000}";
  const Host before = up("a");
  http::Response answer = answer_of(up("a"));
  const std::size_t at = answer.body.find("\"processes\":[") + std::string_view("\"processes\":[").size();
  answer.body.insert(at, processes + (answer.body[at] == ']' ? "" : ","));
  const HostNews news = news_after_asking(before, answer, 200);
  CHECK(!news.host.is_up());
  CHECK(news.host.error.find("KiB, and is not shown") != std::string::npos);
  CHECK(news.host.report == before.report);
  CHECK(news.entry.find(news.host.error) != std::string::npos);
  CHECK(news_after_asking(news.host, answer, 201).entry.empty());
}

TEST_CASE("what is new of a host has its text, and the rest has none") {
  const Host before = up("a");
  const Host after = news_after_asking(before, http::Response{.status = 304}, 200).host;
  CHECK(after.seen_s == 200);
  CHECK(news_after_asking(before, http::Response{.status = 304}, 200).entry.empty());
  CHECK(!news_after_asking(before, answer_of(up("a")), 200).entry.empty());
  CHECK(news_of_failure(before, "no room").entry.find("no room") != std::string::npos);
}

}  // namespace
}  // namespace berth::hub::hub_pages_test
