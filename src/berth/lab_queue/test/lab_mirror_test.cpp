#include "berth/lab_queue/lab_mirror.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace berth::lab_queue::lab_mirror_test {
namespace {

std::string ticket_on(const std::string& host) {
  return lab_ticket_json(
      {.id = "", .order = 0, .home = "desk", .uid = 1000, .lane = 1, .hosts = {host}, .joined = {}});
}

std::string start_of(std::int64_t pid, std::uint32_t uid = 1000, unsigned gpus = 1) {
  return lab_start_json(
      {.host = "gpu1", .pid = pid, .uid = uid, .gpus = gpus, .number = OrderNumber{QueueOrder::fair, pid}});
}

EtcdNews news_of(std::vector<EtcdNews::Change> changes) {
  EtcdNews news;
  news.changes = std::move(changes);
  return news;
}

TEST_CASE("what was read and what is told since are known") {
  LabMirror mirror;
  CHECK(!mirror.is_whole());
  mirror.read({.values = {{"/berth/1/store", "this one", 1, 1},
                          {"/berth/1/alive/desk", "1.0", 2, 2},
                          {"/berth/1/ticket/desk-a", ticket_on("gpu1"), 3, 4},
                          {"/berth/1/start/desk-b", start_of(7), 5, 5}},
               .revision = 6,
               .count = 4});
  CHECK(mirror.is_whole());
  CHECK(mirror.mark() == "this one");
  CHECK(mirror.alive().at("desk") == "1.0");
  CHECK(mirror.starts().at("desk-b").pid == 7);
  CHECK(mirror.queue().find("desk-a")->order == 3);
  CHECK(mirror.revision() == 6);
  mirror.hear(news_of({{{"/berth/1/ticket/desk-a", "", 0, 8}, true},
                       {{"/berth/1/alive/desk", "", 0, 9}, true},
                       {{"/berth/1/start/desk-a", start_of(8), 9, 9}, false}}));
  CHECK(mirror.queue().size() == 0);
  CHECK(mirror.alive().empty());
  CHECK(mirror.starts().size() == 2);
  CHECK(mirror.revision() == 9);
  mirror.forget();
  CHECK(!mirror.is_whole());
  CHECK(mirror.starts().empty());
}

TEST_CASE("what is told before anything was read, or after it was forgotten, makes nothing whole") {
  LabMirror mirror;
  mirror.hear(news_of({{{"/berth/1/start/desk-a", start_of(8), 9, 9}, false}}));
  LabChange change;
  change.puts.push_back({"/berth/1/start/desk-b", start_of(9)});
  mirror.made_here(change, 10);
  CHECK(!mirror.is_whole());
  CHECK(mirror.starts().empty());
}

TEST_CASE("what was started counts for its user, until it ends") {
  LabMirror mirror;
  mirror.read({.values = {{"/berth/1/start/desk-a", start_of(7, 1, 4), 2, 2},
                          {"/berth/1/start/desk-b", start_of(8, 1, 2), 3, 3},
                          {"/berth/1/start/desk-c", "of another version", 4, 4}},
               .revision = 4,
               .count = 3});
  CHECK(mirror.gpus_by_user().in_all.at(1) == 6);
  CHECK(mirror.gpus_by_user().firmly.at(1) == 6);
  CHECK(mirror.starts().at("desk-c").host.empty());
  REQUIRE(mirror.numbers().size() == 2);
  CHECK(mirror.numbers().front().granted);
  CHECK(mirror.numbers().front().number == OrderNumber{QueueOrder::fair, 7});
  mirror.hear(news_of({{{"/berth/1/start/desk-a", "", 0, 5}, true}}));
  CHECK(mirror.gpus_by_user().in_all.at(1) == 2);
}

TEST_CASE("a value that is no ticket is in no line, and takes one from there") {
  LabMirror mirror;
  mirror.read({.values = {{"/berth/1/ticket/desk-a", ticket_on("gpu1"), 3, 3}}, .revision = 3, .count = 1});
  mirror.hear(news_of({{{"/berth/1/ticket/desk-a", "nothing", 3, 4}, false}}));
  CHECK(mirror.queue().size() == 0);
  CHECK(mirror.agrees({.values = {{"/berth/1/ticket/desk-a", "", 3, 4}}, .revision = 4, .count = 1}));
}

TEST_CASE("what is told late takes nothing back") {
  LabMirror mirror;
  mirror.read({.values = {}, .revision = 4, .count = 0});
  const auto put = [](const std::string& value) {
    LabChange change;
    change.puts.push_back({"/berth/1/alive/a", value});
    return change;
  };
  const auto told = [](const std::string& value, std::uint64_t revision) {
    return news_of({{{"/berth/1/alive/a", value, 5, revision}, false}});
  };
  mirror.hear(told("before all was read", 3));
  CHECK(mirror.alive().empty());
  mirror.made_here(put("first"), 5);
  mirror.made_here(put("second"), 6);
  mirror.hear(told("first", 5));
  CHECK(mirror.alive().at("a") == "second");
  LabChange removal;
  removal.removed = {"/berth/1/alive/a"};
  mirror.made_here(removal, 7);
  mirror.hear(told("second", 6));
  CHECK(mirror.alive().empty());
  mirror.hear(news_of({{{"/berth/1/alive/a", "", 0, 7}, true}}));
  mirror.hear(told("third", 8));
  CHECK(mirror.alive().at("a") == "third");
}

TEST_CASE("a mirror that was told late, and makes changes of its own, has in the end what the store has") {
  CHECK(rc::check([](const std::vector<std::uint8_t>& acts) {
    std::map<std::string, StoredValue> store;
    std::vector<EtcdNews::Change> history;  // what the watch tells, in its order
    std::vector<bool> was_known;            // by made_here, of each of them
    std::uint64_t revision = 1;
    LabMirror mirror;
    std::size_t told = 0;
    const auto read = [&] {
      StoredRange all{.values = {}, .revision = revision, .count = store.size()};
      for (const auto& [key, value] : store) all.values.push_back(value);
      mirror.read(all);
      // A watch begins behind what was read, or, where it went on, before it.
      told = std::min(told, history.size());
    };
    read();
    for (const std::uint8_t act : acts) {
      const std::string folder = std::array{"ticket", "start", "alive", "ticket"}[act >> 6U];
      const std::string key = fmt::format("/berth/1/{}/desk-{}", folder, act >> 3U & 3U);
      LabChange change;
      const bool is_here = act % 8 < 4;
      if (act % 8 == 6) {
        const std::size_t until = std::min(history.size(), told + 1 + (act >> 3U) % 4U);
        mirror.hear(news_of({history.begin() + static_cast<std::ptrdiff_t>(told),
                             history.begin() + static_cast<std::ptrdiff_t>(until)}));
        told = until;
        continue;
      }
      if (act % 8 == 7) {
        read();
        continue;
      }
      ++revision;
      if (act % 2 == 0) {
        const auto known = store.find(key);
        const std::string text = folder == "start" ? start_of(static_cast<std::int64_t>(revision))
                                                   : ticket_on(std::to_string(revision));
        const StoredValue value{key, text, known == store.end() ? revision : known->second.created, revision};
        store.insert_or_assign(key, value);
        history.push_back({value, false});
        change.puts.push_back({key, value.value});
      } else if (store.erase(key) > 0) {
        history.push_back({{key, "", 0, revision}, true});
        change.removed = {key};
      } else {
        --revision;
        continue;
      }
      // Whoever changes something here knows of the key what the store has: its conditions see to
      // that.
      bool is_known = is_here;
      for (std::size_t i = told; i + 1 < history.size(); ++i)
        is_known = is_known && (was_known[i] || history[i].value.key != key);
      was_known.push_back(is_known);
      if (is_known) mirror.made_here(change, revision);
    }
    const auto has_all = [&] {
      std::map<std::string, std::size_t> keys{{"ticket", 0}, {"start", 0}, {"alive", 0}};
      bool is_same = true;
      for (const auto& [key, value] : store) {
        const std::string name = key.substr(key.rfind('/') + 1);
        const std::string folder = key.substr(kAllOfLab.size(), key.rfind('/') - kAllOfLab.size());
        ++keys[folder];
        if (folder == "ticket") {
          is_same = is_same && mirror.queue().find(name) == read_lab_ticket(name, value);
        } else if (folder == "start") {
          const auto known = mirror.starts().find(name);
          is_same = is_same && known != mirror.starts().end() && known->second == read_lab_start(value.value);
        } else {
          const auto known = mirror.alive().find(name);
          is_same = is_same && known != mirror.alive().end() && known->second == value.value;
        }
      }
      return is_same && mirror.queue().size() == keys["ticket"] && mirror.starts().size() == keys["start"] &&
             mirror.alive().size() == keys["alive"];
    };
    const auto agrees = [&] {
      StoredRange since{.values = {}, .revision = revision, .count = store.size()};
      for (const auto& [key, value] : store)
        if (value.changed > mirror.revision())
          since.values.push_back({key, "", value.created, value.changed});
      return mirror.agrees(since);
    };
    if (agrees()) RC_ASSERT(has_all());
    mirror.hear(news_of({history.begin() + static_cast<std::ptrdiff_t>(told), history.end()}));
    RC_ASSERT(has_all());
    RC_ASSERT(agrees());
  }));
}

TEST_CASE("one that has gone and one that has come, neither of them told, are not taken for what was known") {
  LabMirror mirror;
  mirror.read({.values = {{"/berth/1/ticket/desk-a", ticket_on("gpu1"), 3, 3}}, .revision = 3, .count = 1});
  LabChange change;
  change.puts.push_back({"/berth/1/ticket/desk-c", ticket_on("gpu1")});
  mirror.made_here(change, 6);
  // What is earlier than this change may be unknown.
  CHECK(mirror.revision() == 3);
  const StoredValue own{"/berth/1/ticket/desk-c", "", 6, 6};
  CHECK(mirror.agrees({.values = {own}, .revision = 6, .count = 2}));
  CHECK(!mirror.agrees({.values = {{"/berth/1/ticket/desk-b", "", 5, 5}, own}, .revision = 6, .count = 2}));
}

}  // namespace
}  // namespace berth::lab_queue::lab_mirror_test
