#include "berth/hub/model/poller_step.h"

#include <doctest/doctest.h>

#include "berth/hub/test/poller_site.h"

namespace berth::poller_test::poller_pages_test {

// --- what is published, and when

TEST_CASE("the first page with answers is made as soon as every host was heard, up or not") {
  Site site;
  site.names({"a", "b", "self", "c!"});
  site.is(OwnPublished{});
  CHECK(site.tells("a") == Words{"shows a", "publishes in 200 ms", "asks a in 1250 ms"});
  site.passes(10ms);
  CHECK(site.fails("b") == Words{"shows b", "asks b in 4990 ms"});
  CHECK(site.tells("self") == Words{"shows self"} + kPublishes);
  // The bell for it still rings.
  CHECK(site.passes(190ms) == Words{});
}

TEST_CASE("a host that is silent delays the first page no longer than news delay any other") {
  Site site;
  site.names({"a", "silent"});
  site.tells("a");
  CHECK(site.passes(200ms) == kPublishes);
  // It is heard when the question to it has taken too long.
  site.now += 4800ms;
  CHECK(site.fails("silent") == Words{"shows silent", "makes a page", "asks silent in 0 ms", "publishes it"});
}

TEST_CASE("news of several hosts within 200 ms are one page") {
  Site site = settled({"a", "b"});
  site.passes(5s);
  CHECK(site.tells("a") == Words{"shows a", "publishes in 200 ms", "asks a in 2500 ms"});
  site.passes(199ms);
  CHECK(site.tells("b") == Words{"shows b", "asks b in 4801 ms"});
  CHECK(site.passes(1ms) == kPublishes);
  CHECK(site.passes(1s) == Words{});
}

TEST_CASE("what is new while a page is made is published after it") {
  Site site;
  site.makes_at_once = false;
  site.names({"a", "b", "c"});
  site.tells("a");
  CHECK(site.passes(200ms) == Words{"makes a page"});
  CHECK(site.tells("b") == Words{"shows b", "asks b in 3133 ms"});
  CHECK(site.makes() == Words{"publishes it", "publishes in 200 ms"});
  CHECK(site.passes(200ms) == Words{"makes a page"});
  // All were heard now.
  CHECK(site.tells("c") == Words{"shows c", "asks c in 4600 ms"});
  CHECK(site.makes() == Words{"publishes it", "makes a page"});
  CHECK(site.makes() == Words{"publishes it"});
}

TEST_CASE("the lab queue is told as an event of its own") {
  Site site = settled({"a"});
  const std::uint64_t before = site.state.number;
  CHECK(site.is(LabQueueChanged{}) == Words{"publishes in 200 ms"});
  CHECK(site.state.queue_number == before + 1);
  CHECK(site.passes(200ms) == kPublishes);
  CHECK(site.state.published == before + 2);
}

TEST_CASE("a page that could not be made is made again later, and the admin is told") {
  Site site = settled({"a"});
  site.passes(5s);
  site.tells("a");
  site.has_memory_for_pages = false;
  CHECK(site.passes(200ms) == Words{"makes a page", "logs: no memory", "publishes in 5000 ms"});
  site.has_memory_for_pages = true;
  CHECK(site.passes(5s) == Words{"asks a"} + kPublishes);
  site.has_memory_for_pages = false;
  CHECK(site.names({"a"}) == Words{"makes a page at once", "logs: no memory", "publishes in 5000 ms"});
  site.has_memory_for_pages = true;
  CHECK(site.passes(5s) == kPublishes);
}

TEST_CASE("a page that a later one has overtaken is neither published nor missed") {
  Site site = settled({"a", "b"});
  site.passes(5s);
  site.makes_at_once = false;
  site.tells("a");
  CHECK(site.passes(200ms) == Words{"makes a page"});
  const std::uint64_t older = site.being_made.front();
  CHECK(site.names({"b"}) == Words{"drops a", "makes a page at once", "publishes it"});
  CHECK(site.makes() == Words{});
  CHECK(site.is(NotMade{older, "no memory"}) == Words{"logs: no memory"});
  // Nor while the next one is being made.
  site.tells("b");
  CHECK(site.passes(200ms) == Words{"makes a page"});
  CHECK(site.is(Made{older}) == Words{});
  CHECK(site.makes() == Words{"publishes it"});
}

// --- settings that are read again

TEST_CASE("what is gathered is published with the settings that were read") {
  Site site = settled({"a"});
  site.passes(5s);
  site.tells("a");
  CHECK(site.names({"a"}) == Words{"makes a page at once", "publishes it"});
  CHECK(site.passes(200ms) == Words{});
}

TEST_CASE("a host that is named again goes on as it was, over a connection with certificates read anew") {
  Site site = settled({"a", "b"});
  CHECK(site.passes(2500ms) == Words{"asks a"});
  CHECK(site.names({"b", "a", "c"}) ==
        Words{"shows c", "connects to c, and asks it", "makes a page at once", "publishes it"});
  CHECK(site.tells_the_same("a") == Words{"notes a", "asks a in 5000 ms"});
  CHECK(site.passes(2500ms) == Words{"connects to b, and asks it"});
  CHECK(site.passes(2500ms) == Words{"connects to a, and asks it"});
  site.tells_the_same("a");
  CHECK(site.passes(5s) == Words{"asks a"});
}

TEST_CASE("a host that is named no more is dropped and not asked again") {
  Site site = settled({"a", "b"});
  CHECK(site.names({"b"}) == Words{"drops a", "makes a page at once", "publishes it"});
  CHECK(site.passes(5s) == Words{"connects to b, and asks it"});
  CHECK(site.passes(1h) == Words{});
}

TEST_CASE("hosts that are new after others are asked at once, and then spread over the interval") {
  Site site = settled({"a"});
  site.names({"a", "b", "c"});
  CHECK(site.tells("b") == Words{"shows b", "publishes in 200 ms", "asks b in 2500 ms"});
  CHECK(site.tells("c") == Words{"shows c", "makes a page", "asks c in 5000 ms", "publishes it"});
}

}  // namespace berth::poller_test::poller_pages_test
