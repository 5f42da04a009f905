#include "berth/hub/model/poller.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <utility>

#include "berth/hub/model/bounds.h"

namespace berth::poller_test {
namespace {

using namespace poller;
using poller::Connection;
using poller::Host;
using poller::Moment;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr std::size_t kKiB = 1U << 10U;
constexpr std::size_t kMiB = 1U << 20U;
constexpr std::size_t kShort = kKiB;  ///< what a host tells, unless a case says otherwise
const std::string kNoRoom =
    "what it tells is not shown: with that of all others it would take more than 64 MiB";
const std::string kNoMemory = "what it answers cannot be dealt with here for want of memory";

std::string in(Moment time) {
  return fmt::format("in {} ms", std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

/// A hub without its network. What its hosts tell is passed to the step; `did` is what the hub did.
class Site {
 public:
  /// "self": this machine. A name that ends with "!": the settings refuse it.
  Words names(const Words& hosts, std::chrono::milliseconds every = 5s) {
    Applied applied{{}, every};
    std::map<std::string, HostId> then;
    for (const std::string& name : hosts) {
      const HostId id = then[name] = ids.contains(name) ? ids.at(name) : ++last_id_;
      names_of[id] = name;
      applied.hosts.push_back({id, kind_of(name)});
    }
    ids = then;
    return is(std::move(applied));
  }

  Words is(What what) {
    did.clear();
    take(std::move(what));
    return did;
  }
  /// All that rings until then is told to the step.
  Words passes(Moment time) {
    did.clear();
    const Moment end = now + time;
    while (const auto next = first_bell()) {
      if (next->first > end) break;
      now = next->first;
      if (const auto* due = std::get_if<Due>(&next->second))
        bells.erase(due->host);
      else
        page_bell.reset();
      take(next->second);
    }
    now = end;
    return did;
  }
  /// The host answers with something new.
  Words tells(const std::string& name, std::size_t bytes = kShort, std::string tag = "") {
    return is(Read{ids.at(name), true, true, bytes, std::move(tag)});
  }
  /// It answers with what it told before: 304, or the same text again.
  Words tells_the_same(const std::string& name, std::optional<std::string> tag = {}) {
    return is(Read{ids.at(name), true, false, 0, std::move(tag)});
  }
  Words fails(const std::string& name) { return is(Read{ids.at(name), false, false, kShort}); }
  Words fails_again(const std::string& name) { return is(Read{ids.at(name), false, false, 0}); }
  Words lacks_memory(const std::string& name) { return is(Lost{ids.at(name)}); }
  /// The first of the pages that are being made is ready.
  Words makes() { return is(Made{first_page()}); }
  Words cannot_make() { return is(NotMade{first_page(), "no memory"}); }

  State state{};
  Moment now = 1000s;
  double chance = 0.5;
  Words did{};
  std::map<std::string, HostId> ids{};
  std::map<HostId, std::string> names_of{};
  std::map<HostId, Moment> bells{};
  std::optional<Moment> page_bell{};
  std::deque<std::uint64_t> being_made{};
  bool makes_at_once = true;
  bool has_memory_for_pages = true;
  bool has_memory_for_refusals = true;
  /// What is checked of each deed, before it is done.
  std::function<void(const Action&)> check = [](const Action&) {};

 private:
  std::uint64_t first_page() {
    const std::uint64_t number = being_made.front();
    being_made.pop_front();
    return number;
  }

  static Kind kind_of(const std::string& name) {
    if (name.ends_with('!')) return Kind::refused;
    return name == "self" ? Kind::own : Kind::far;
  }

  std::optional<std::pair<Moment, What>> first_bell() const {
    std::optional<std::pair<Moment, What>> first;
    for (const auto& [id, at] : bells)
      if (!first || at < first->first) first.emplace(at, Due{id});
    if (page_bell && (!first || *page_bell < first->first)) first.emplace(*page_bell, PageDue{});
    return first;
  }

  void take(What what) {
    events_.push_back(std::move(what));
    if (events_.size() > 1) return;
    for (; !events_.empty(); events_.pop_front()) {
      const What& each = events_.front();
      for (const Action& action : next(state, {now, chance, each})) {
        check(action);
        std::visit([this](const auto& deed) { perform(deed); }, action);
      }
    }
  }

  void does(std::string words) { did.push_back(std::move(words)); }
  const std::string& name(HostId id) const { return names_of.at(id); }

  void perform(const Ask& what) {
    std::string words = what.connection == Connection::fresh ? "connects to {}, and asks it" : "asks {}";
    if (!what.tag.empty()) words += " for what is newer than " + what.tag;
    does(fmt::format(fmt::runtime(words), name(what.host)));
  }
  void perform(const AskAt& what) {
    bells[what.host] = what.at;
    does(fmt::format("asks {} {}", name(what.host), in(what.at - now)));
  }
  void perform(const ReadOwn&) { does("reads its own"); }
  void perform(const Refuse& what) {
    does(fmt::format("refuses {}: {}", name(what.host), what.why));
    take(Read{what.host, false, false, has_memory_for_refusals ? kShort : 0});
  }
  void perform(const Keep& what) { does(fmt::format("notes {}", name(what.host))); }
  void perform(const Post& what) { does(fmt::format("shows {}", name(what.host))); }
  void perform(const Drop& what) {
    bells.erase(what.host);
    does(fmt::format("drops {}", name(what.host)));
  }
  void perform(const PublishAt& what) {
    page_bell = what.at;
    does("publishes " + in(what.at - now));
  }
  void perform(const MakePage& what) {
    does("makes a page");
    if (makes_at_once)
      end_page(what.number);
    else
      being_made.push_back(what.number);
  }
  void perform(const MakePageNow& what) {
    does("makes a page at once");
    end_page(what.number);
  }
  void end_page(std::uint64_t number) {
    if (has_memory_for_pages)
      take(Made{number});
    else
      take(NotMade{number, "no memory"});
  }
  void perform(const Publish&) { does("publishes it"); }
  void perform(const Log& what) {
    does(fmt::format("logs{}: {}", what.host ? " of " + name(*what.host) : "", what.what));
  }

  std::deque<What> events_{};
  HostId last_id_ = 0;
};

/// Hosts that were all heard, and rest.
Site settled(const Words& hosts) {
  Site site;
  site.names(hosts);
  for (const std::string& name : hosts) site.tells(name);
  return site;
}

const Words kPublishes{"makes a page", "publishes it"};

std::string first_of(const Words& words) {
  return words.empty() ? "" : words.front();
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

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
  for (const What& late :
       {What(Read{1, true, true, kShort}), What(Lost{1}), What(Unreadable{1, "x"}), What(Due{1})})
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

namespace {

/// Hosts, pages and settings of which anything may go wrong at any time.
class AnyDay {
 public:
  void go() {
    site_.makes_at_once = false;
    site_.check = [this](const Action& action) {
      std::visit([this](const auto& what) { on(what); }, action);
    };
    site_.state.number = number_ = static_cast<std::uint64_t>(below(1000));
    for (int i = below(60); i >= 0; --i) {
      anything();
      check_all();
    }
    // From now on nothing goes wrong: each host is asked, and what is new comes to the clients.
    site_.has_memory_for_pages = site_.has_memory_for_refusals = true;
    times_asked_.clear();
    for (int i = 0; i < 4; ++i) {
      for (const HostId id : std::set(asked_)) answer(id, Read{id, true, true, kShort});
      site_.passes(60s);
      end_pages();
    }
    for (const auto& [name, id] : site_.ids)
      if (is_far(name)) RC_ASSERT(times_asked_[id] > 1);
    RC_ASSERT(!has_news());
  }

 private:
  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  static bool one_in(int count) { return below(count) == 0; }

  void anything() {
    switch (below(9)) {
      case 0: {
        Words named;
        for (const char* name : {"a", "b", "c", "d!", "self"})
          if (!one_in(3)) named.emplace_back(name);
        if (one_in(2)) std::ranges::reverse(named);
        site_.names(named, std::chrono::milliseconds(1000 * (1 + below(5))));
        return;
      }
      case 1:
        return (void)site_.is(OwnPublished{});
      case 2:
        return (void)site_.is(LabQueueChanged{});
      case 3:
        site_.has_memory_for_pages = !one_in(3);
        site_.has_memory_for_refusals = !one_in(3);
        site_.chance = 0.1 * below(10);
        return;
      case 4:
        if (site_.being_made.empty()) return;
        return (void)(one_in(3) ? site_.cannot_make() : site_.makes());
      case 5:
        return (void)site_.passes(std::chrono::milliseconds(below(8000)));
      default:
        return something_comes();
    }
  }

  /// Of a host that may not have been asked, that has gone, or that there never was.
  void something_comes() {
    const auto id = static_cast<HostId>(1 + below(12));
    switch (below(6)) {
      case 0:
        return answer(id, Lost{id});
      case 1:
        return answer(id, Unreadable{id, "x"});
      case 2:
        return (void)site_.is(Due{id});
      case 3:
        return (void)site_.is(PageDue{});
      case 4:
        return answer(id, Read{id, !one_in(2), false, one_in(2) ? kShort : 0});
      default:
        return answer(id, Read{id, true, true, kMiB * static_cast<std::size_t>(1 + below(10)), "t"});
    }
  }

  void answer(HostId id, What what) {
    asked_.erase(id);
    site_.is(std::move(what));
  }

  void end_pages() {
    while (!site_.being_made.empty()) {
      site_.makes();
      site_.passes(200ms);
    }
  }

  // --- what is checked

  bool is_wanted(HostId id) const {
    return std::ranges::any_of(site_.ids, [&](const auto& each) { return each.second == id; });
  }
  static bool is_far(const std::string& name) { return name != "self" && !name.ends_with('!'); }
  /// That clients have not been told.
  bool has_news() const { return std::max(news_, site_.state.queue_number) > published_; }
  void rises(std::uint64_t number) {
    RC_ASSERT(number > number_);
    number_ = number;
  }

  void on(const Ask& what) {
    RC_ASSERT(is_wanted(what.host));
    RC_ASSERT(asked_.insert(what.host).second);
    ++times_asked_[what.host];
  }
  void on(const ReadOwn& what) {
    RC_ASSERT(is_wanted(what.host));
    RC_ASSERT(asked_.insert(what.host).second);
  }
  void on(const AskAt& what) {
    RC_ASSERT(is_wanted(what.host));
    RC_ASSERT(!asked_.contains(what.host));
    RC_ASSERT(what.at >= site_.now);
    RC_ASSERT(what.at <= site_.now + 38s);
  }
  void on(const Refuse& what) { RC_ASSERT(is_wanted(what.host)); }
  void on(const Keep& what) { RC_ASSERT(is_wanted(what.host)); }
  void on(const Post& what) {
    RC_ASSERT(is_wanted(what.host));
    rises(what.number);
    news_ = what.number;
    const hub::HostShares shares(site_.state.hosts.size());
    if (shares.beyond_share(entry_of(site_.state.hosts.at(what.host))) == 0) return;
    std::size_t beyond = 0;
    for (const auto& [id, host] : site_.state.hosts) beyond += shares.beyond_share(entry_of(host));
    RC_ASSERT(beyond <= 32 * kMiB);
  }
  static std::size_t entry_of(const Host& host) {
    if (const auto* own = std::get_if<Own>(&host)) return own->row.entry_bytes;
    const auto* far = std::get_if<Far>(&host);
    return far != nullptr ? far->row.entry_bytes : 0;
  }
  void on(const Drop& what) {
    RC_ASSERT(!is_wanted(what.host));
    asked_.erase(what.host);
  }
  void on(const PublishAt& what) {
    RC_ASSERT(what.at > site_.now);
    RC_ASSERT(what.at <= site_.now + 5s);
  }
  void on(const MakePage& what) { rises(what.number); }
  void on(const MakePageNow& what) { rises(what.number); }
  void on(const Publish& what) {
    RC_ASSERT(what.number > published_);
    published_ = what.number;
  }
  void on(const Log&) {}

  void check_all() {
    // Each host was asked, or is to be asked at some time.
    for (const auto& [name, id] : site_.ids)
      if (is_far(name)) RC_ASSERT(asked_.contains(id) || site_.bells.contains(id));
    // What is new is being published, or is to be.
    if (has_news()) RC_ASSERT(site_.page_bell.has_value() || !site_.being_made.empty());
  }

  Site site_{};
  std::set<HostId> asked_{};  ///< and have not answered
  std::map<HostId, int> times_asked_{};
  std::uint64_t number_ = 0;
  std::uint64_t news_ = 0;
  std::uint64_t published_ = 0;
};

}  // namespace

TEST_CASE("whatever hosts tell, no host is asked twice at once, forgotten, or shown once it has gone") {
  CHECK(rc::check("any day", [] { AnyDay().go(); }));
}

}  // namespace berth::poller_test
