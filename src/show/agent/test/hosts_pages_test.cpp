#include "berth/agent/publish.h"

#include <doctest/doctest.h>

#include "berth/verdict/test/machine.h"
#include "berth/view/hosts_reader.h"

namespace berth::agent::hosts_pages_test {
namespace {

PostedHost posted(const std::string& name, std::uint64_t number) {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(2);
  report->verdicts = judge(berth::Request(), {}, report->facts).value();
  const Host host{name, std::nullopt, "", 1, std::move(report)};
  return post(host, http::make_part(view::host_json(host)), number);
}

http::Published two_hosts() {
  http::Published published;
  publish_hosts({posted("b", 12), posted("a", 11)}, {.number = 13, .time_s = 5, .every_s = 1}, published);
  return published;
}

TEST_CASE("hosts keep their order in the document, and events come by their numbers") {
  const http::Published published = two_hosts();
  const http::Page& page = published.pages.at("/api/v1/hosts");
  const std::string text = joined(*page.parts);
  CHECK(page.tag == "\"n13\"");
  CHECK(text.starts_with("{\"kind\":\"berth-hosts\",\"version\":1,"));
  CHECK(view::read_hosts(text)->hosts.size() == 2);
  CHECK(text.find("\"name\":\"b\"") < text.find("\"name\":\"a\""));
  const auto& events = published.streams.at("/api/v1/hosts/events");
  REQUIRE(events.size() == 3);
  CHECK(events[0].number == 11);
  CHECK(joined(events[0].parts).starts_with("event: host\nid: 11\ndata: {\"name\":\"a\""));
  CHECK(joined(events[2].parts).starts_with("event: summary\nid: 13\ndata: {\"number\":13,"));
  for (const http::Frame& each : events)
    CHECK(joined(each.parts).find("\n\n") == joined(each.parts).size() - 2);
}

TEST_CASE("a host is told as what has become of it, and only a summary has a number to go on from") {
  const PostedHost before = posted("a", 11);
  Host host = *before.host;
  host.error = "nobody listens";
  http::Part entry = http::make_part(view::host_json(host));
  const std::string change = view::host_change_json(*before.entry.text, *entry.text);
  const PostedHost after = post(host, std::move(entry), 14, HostChange{11, http::make_part(change)});
  http::Published published;
  publish_hosts({after, posted("b", 12)}, {.number = 15}, published);
  const auto& changes = published.streams.at("/api/v1/hosts/changes");
  REQUIRE(changes.size() == 3);
  CHECK(joined(changes[1].parts_after(10)).starts_with("event: host\ndata: {\"name\":\"a\","));
  CHECK(joined(changes[1].parts_after(11)) == "event: change\ndata: " + change + "\n\n");
  CHECK(joined(changes[0].parts_after(13)).starts_with("event: host\ndata: {\"name\":\"b\","));
  CHECK(joined(changes[2].parts).starts_with("event: summary\nid: 15\n"));
  for (const http::Frame& each : published.streams.at("/api/v1/hosts/events"))
    CHECK(joined(each.parts_after(20)) == joined(each.parts));
}

TEST_CASE("the queue of the lab is told when it has changed, and also that nobody stands there any more") {
  http::Published published;
  const std::vector<PostedHost> hosts{posted("a", 11), posted("b", 13)};
  publish_hosts(hosts, {.number = 14, .queue = {{"desk1:7", 1}}, .queue_number = 12}, published);
  CHECK(joined(*published.pages.at("/api/v1/hosts").parts)
            .contains("\"line\":[{\"asked_at\":\"desk1:7\",\"place\":1}]"));
  for (const char* path : {"/api/v1/hosts/events", "/api/v1/hosts/changes"}) {
    const auto& events = published.streams.at(path);
    REQUIRE(events.size() == 4);
    CHECK(events[1].number == 12);
    CHECK(joined(events[1].parts) ==
          "event: line\ndata: {\"line\":[{\"asked_at\":\"desk1:7\",\"place\":1}]}\n\n");
    CHECK(!joined(events[3].parts).contains("desk1"));
  }
  publish_hosts(hosts, {.number = 16, .queue_number = 15}, published);
  CHECK(!joined(*published.pages.at("/api/v1/hosts").parts).contains("line"));
  CHECK(joined(published.streams.at("/api/v1/hosts/changes")[2].parts) ==
        "event: line\ndata: {\"line\":[]}\n\n");
}

TEST_CASE("a filter is answered from what was published, and a wrong one with its column") {
  const http::Published published = two_hosts();
  const auto& match = published.questions.at("/api/v1/match");
  const http::Page found = match({{"filter", "index=1"}});
  CHECK(found.status == 200);
  CHECK(found.text->find("{\"host\":\"b\",\"uuid\":\"" + test::uuid_of(1) + "\"}") != std::string::npos);
  CHECK(match({{"filter", "colour=red"}}).status == 400);
  CHECK(match({}).status == 400);
}

}  // namespace
}  // namespace berth::agent::hosts_pages_test
