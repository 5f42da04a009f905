#include "berth/hub/model/poller_step.h"

#include <doctest/doctest.h>

#include "berth/hub/test/poller_site.h"

namespace berth::poller_test::poller_step_test {

// --- who is asked, and when

TEST_CASE("hosts are asked all at once, and then one after another, evenly over the interval") {
  Site site;
  CHECK(site.names({"a", "b"}) == Words{"shows a", "shows b", "connects to a, and asks it",
                                        "connects to b, and asks it", "makes a page at once",
                                        "publishes it"});
  CHECK(site.tells("a") == Words{"shows a", "publishes in 200 ms", "asks a in 2500 ms"});
  CHECK(site.tells("b") == Words{"shows b", "makes a page", "asks b in 5000 ms", "publishes it"});
  CHECK(site.passes(2500ms) == Words{"asks a"});
  CHECK(site.tells_the_same("a") == Words{"notes a", "asks a in 5000 ms"});
}

TEST_CASE("a host is asked an interval after it was asked, or at once if its answer took longer") {
  Site site = settled({"a"});
  site.passes(5s);
  site.now += 2s;
  CHECK(site.tells_the_same("a") == Words{"notes a", "asks a in 3000 ms"});
  site.passes(3s);
  site.now += 7s;
  CHECK(site.tells_the_same("a") == Words{"notes a", "asks a in 0 ms"});
}

TEST_CASE("a host that has not answered is not asked, whatever rings") {
  Site site = settled({"a"});
  CHECK(site.passes(5s) == Words{"asks a"});
  CHECK(site.is(Due{1}) == Words{});
  CHECK(site.passes(1h) == Words{});
}

TEST_CASE("a bell that rings too early is not heard") {
  Site site = settled({"a"});
  site.now += 4999ms;
  CHECK(site.is(Due{1}) == Words{});
  site.now += 1ms;
  CHECK(site.is(Due{1}) == Words{"asks a"});
}

TEST_CASE("a host that fails is asked less and less, by chance, and as before once it answers") {
  Site site = settled({"a"});
  site.passes(5s);
  site.chance = 0;
  CHECK(site.fails("a") == Words{"shows a", "publishes in 200 ms", "asks a in 5000 ms"});
  site.passes(5s);
  CHECK(site.fails_again("a") == Words{"notes a", "asks a in 7500 ms"});
  site.passes(7500ms);
  site.chance = 0.5;
  CHECK(site.fails_again("a") == Words{"notes a", "asks a in 20000 ms"});
  site.passes(20s);
  CHECK(site.tells("a") == Words{"shows a", "publishes in 200 ms", "asks a in 5000 ms"});
}

TEST_CASE("a host that the settings refuse is shown and never asked") {
  Site site;
  CHECK(site.names({"a!"}) == Words{"shows a!", "makes a page at once", "publishes it"});
  CHECK(site.passes(1h) == Words{});
}

// --- what it tells

TEST_CASE("a host of which nothing is new is not sent again") {
  Site site = settled({"a"});
  site.passes(5s);
  const std::uint64_t before = site.state.number;
  CHECK(site.tells_the_same("a") == Words{"notes a", "asks a in 5000 ms"});
  // An agent of another version may know no tags, and send its whole text again.
  site.passes(5s);
  CHECK(site.tells_the_same("a", "") == Words{"notes a", "asks a in 5000 ms"});
  CHECK(site.state.number == before);
}

TEST_CASE("a host is asked for what is newer than its answer that is shown") {
  Site site;
  site.names({"a"});
  site.tells("a", kShort, "7");
  CHECK(site.passes(5s) == Words{"asks a for what is newer than 7"});
  site.tells_the_same("a");
  CHECK(site.passes(5s) == Words{"asks a for what is newer than 7"});
  site.tells_the_same("a", "8");
  CHECK(site.passes(5s) == Words{"asks a for what is newer than 8"});
  // An agent of another version may tell no tag.
  site.tells("a");
  CHECK(site.passes(5s) == kPublishes + Words{"asks a"});
  site.tells("a", kShort, "9");
  site.passes(5s);
  site.fails("a");
  // What it told before it failed is shown as old.
  CHECK(site.passes(5s) == kPublishes + Words{"asks a"});
}

TEST_CASE("what a host tells unasked, twice, or after it was dropped changes nothing") {
  Site site = settled({"a", "b"});
  CHECK(site.tells("a", 2 * kShort) == Words{});
  CHECK(site.fails("a") == Words{});
  CHECK(site.lacks_memory("a") == Words{});
  CHECK(site.is(Unreadable{1, "x"}) == Words{});
  site.passes(5s);
  site.names({"b"});
  for (const Event& late : {Event(HostRead{1, true, true, kShort}), Event(AnswerLost{1}),
                            Event(Unreadable{1, "x"}), Event(Due{1})})
    CHECK(site.is(late) == Words{});
}

TEST_CASE("an answer that cannot be worked out is a failure in the words that say why") {
  Site site = settled({"a"});
  site.passes(5s);
  CHECK(site.is(Unreadable{1, "no memory"}) ==
        Words{"refuses a: no memory", "shows a", "publishes in 200 ms", "asks a in 5000 ms"});
}

TEST_CASE("where memory ends in an answer the admin is told once, and the host is asked again") {
  Site site = settled({"a"});
  site.passes(5s);
  CHECK(site.lacks_memory("a") == Words{"logs of a: " + kNoMemory, "refuses a: " + kNoMemory, "shows a",
                                        "publishes in 200 ms", "asks a in 5000 ms"});
  CHECK(site.passes(5s) == kPublishes + Words{"connects to a, and asks it"});
  CHECK(first_of(site.lacks_memory("a")) == "refuses a: " + kNoMemory);
  site.passes(10s);
  site.tells("a");
  site.passes(5s);
  CHECK(first_of(site.lacks_memory("a")) == "logs of a: " + kNoMemory);
  // Not even for the words that say so.
  site.has_memory_for_refusals = false;
  site.passes(5s);
  CHECK(site.lacks_memory("a") == Words{"refuses a: " + kNoMemory, "notes a", "asks a in 10000 ms"});
}

TEST_CASE("there is room for what hosts tell beyond their shares until half of it is taken") {
  Site site;
  site.names({"a", "b", "c"});
  // Each has a share of 2.67 MiB of text, and all together 8 MiB beyond that.
  CHECK(first_of(site.tells("a", 8 * kMiB)) == "shows a");
  CHECK(first_of(site.tells("b", 6 * kMiB)) == "refuses b: " + kNoRoom);
  CHECK(site.bells.contains(site.ids.at("b")));
  CHECK(first_of(site.tells("c", 2 * kMiB)) == "shows c");
  site.passes(5s);
  // It may tell more than before, but for that of the others.
  CHECK(first_of(site.tells("a", 10 * kMiB)) == "shows a");
  CHECK(first_of(site.tells("b", 2 * kMiB)) == "shows b");
  site.names({"b", "c"});
  site.passes(5s);
  CHECK(first_of(site.tells("b", 11 * kMiB)) == "shows b");
}

// --- the machine of the hub

TEST_CASE("what the machine of the hub publishes is read, one after another, and the last in any case") {
  Site site;
  CHECK(site.names({"self"}) == Words{"shows self", "makes a page at once", "publishes it"});
  CHECK(site.is(OwnPublished{}) == Words{"reads its own"});
  CHECK(site.is(OwnPublished{}) == Words{});
  CHECK(site.is(OwnPublished{}) == Words{});
  CHECK(site.tells("self") == Words{"shows self", "makes a page", "reads its own", "publishes it"});
  CHECK(site.tells("self") == Words{"shows self", "publishes in 200 ms"});
  CHECK(site.tells("self") == Words{});
  CHECK(site.is(OwnPublished{}) == Words{"reads its own"});
  CHECK(site.lacks_memory("self") ==
        Words{"logs of self: " + kNoMemory, "refuses self: " + kNoMemory, "shows self"});
}

TEST_CASE("what the machine of the hub published before it was named is read when it is") {
  Site site;
  CHECK(site.is(OwnPublished{}) == Words{});
  CHECK(site.names({"self"}) == Words{"shows self", "reads its own", "makes a page at once", "publishes it"});
}

}  // namespace berth::poller_test::poller_step_test
