#include "berth/agent/hosts_pages.h"

#include <doctest/doctest.h>

#include "berth/core/test/machine.h"
#include "berth/render/host_report.h"

namespace berth::serve {
namespace {

PostedHost posted(const std::string& name, std::uint64_t number) {
  auto report = std::make_shared<HostReport>();
  report->facts = test::machine(2);
  report->verdicts = judge(berth::Request(), {}, report->facts).value();
  const Host host{name, std::nullopt, "", 1, std::move(report)};
  return post(host, make_part(render::host_json(host)), number);
}

Published two_hosts() {
  Published published;
  publish_hosts({posted("b", 12), posted("a", 11)}, {.number = 13, .time_s = 5, .every_s = 1}, published);
  return published;
}

TEST_CASE("hosts keep their order in the document, and events come by their numbers") {
  const Published published = two_hosts();
  const Page& page = published.pages.at("/api/v1/hosts");
  const std::string text = joined(*page.parts);
  CHECK(page.tag == "\"n13\"");
  CHECK(text.starts_with("{\"kind\":\"berth-hosts\",\"version\":1,"));
  CHECK(render::read_hosts(text)->hosts.size() == 2);
  CHECK(text.find("\"name\":\"b\"") < text.find("\"name\":\"a\""));
  const auto& events = published.streams.at("/api/v1/hosts/events");
  REQUIRE(events.size() == 3);
  CHECK(events[0].number == 11);
  CHECK(joined(events[0].parts).starts_with("event: host\nid: 11\ndata: {\"name\":\"a\""));
  CHECK(joined(events[2].parts).starts_with("event: summary\nid: 13\ndata: {\"number\":13,"));
  for (const Frame& each : events) CHECK(joined(each.parts).find("\n\n") == joined(each.parts).size() - 2);
}

TEST_CASE("a filter is answered from what was published, and a wrong one with its column") {
  const Published published = two_hosts();
  const auto& match = published.questions.at("/api/v1/match");
  const Page found = match({{"filter", "index=1"}});
  CHECK(found.status == 200);
  CHECK(found.text->find("{\"host\":\"b\",\"uuid\":\"" + test::uuid_of(1) + "\"}") != std::string::npos);
  CHECK(match({{"filter", "colour=red"}}).status == 400);
  CHECK(match({}).status == 400);
}

}  // namespace
}  // namespace berth::serve
