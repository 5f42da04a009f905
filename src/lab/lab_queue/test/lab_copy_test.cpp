#include "berth/lab_queue/model/lab_copy.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace berth::lab_queue::lab_copy_test {
namespace {

using Told = std::vector<ToldChange>;

LabTicket ticket_on(const std::string& host) {
  return {.id = {}, .home = "desk", .uid = 1000, .lane = 1, .hosts = {host}, .joined = {}};
}

LabStart start_of(std::int64_t pid, std::uint32_t uid = 1000, unsigned gpus = 1) {
  return {.host = "gpu1", .pid = pid, .uid = uid, .gpus = gpus, .number = OrderNumber{QueueOrder::fair, pid}};
}

TEST_CASE("what was read and what is told since are known") {
  LabCopy copy;
  CHECK(!copy.is_whole());
  copy.read({.values = {{"/berth/1/store", "this one", 1, 1},
                        {"/berth/1/alive/desk", "1.0", 2, 2},
                        {"/berth/1/ticket/desk-a", ticket_on("gpu1"), 3, 4},
                        {"/berth/1/start/desk-b", start_of(7), 5, 5}},
             .revision = 6,
             .count = 4});
  CHECK(copy.is_whole());
  CHECK(copy.mark() == "this one");
  CHECK(copy.alive().at("desk") == "1.0");
  CHECK(copy.starts().at("desk-b").pid == 7);
  CHECK(copy.queue().find("desk-a")->order == 3);
  CHECK(copy.revision() == 6);
  copy.hear(Told{{{"/berth/1/ticket/desk-a", "", 0, 8}, true},
                 {{"/berth/1/alive/desk", "", 0, 9}, true},
                 {{"/berth/1/start/desk-a", start_of(8), 9, 9}, false}});
  CHECK(copy.queue().size() == 0);
  CHECK(copy.alive().empty());
  CHECK(copy.starts().size() == 2);
  CHECK(copy.revision() == 9);
  copy.forget();
  CHECK(!copy.is_whole());
  CHECK(copy.starts().empty());
}

TEST_CASE("what is told before anything was read, or after it was forgotten, makes nothing whole") {
  LabCopy copy;
  copy.hear(Told{{{"/berth/1/start/desk-a", start_of(8), 9, 9}, false}});
  LabChange change;
  change.puts.push_back({"/berth/1/start/desk-b", start_of(9)});
  copy.made_here(change, 10);
  CHECK(!copy.is_whole());
  CHECK(copy.starts().empty());
}

TEST_CASE("what was started counts for its user, until it ends") {
  LabCopy copy;
  copy.read({.values = {{"/berth/1/start/desk-a", start_of(7, 1, 4), 2, 2},
                        {"/berth/1/start/desk-b", start_of(8, 1, 2), 3, 3},
                        {"/berth/1/start/desk-c", "of another version", 4, 4}},
             .revision = 4,
             .count = 3});
  CHECK(copy.gpus_by_user().in_all.at(1) == 6);
  CHECK(copy.gpus_by_user().firmly.at(1) == 6);
  CHECK(copy.starts().at("desk-c").host.empty());
  REQUIRE(copy.numbers().size() == 2);
  CHECK(copy.numbers().front().granted);
  CHECK(copy.numbers().front().number == OrderNumber{QueueOrder::fair, 7});
  copy.hear(Told{{{"/berth/1/start/desk-a", "", 0, 5}, true}});
  CHECK(copy.gpus_by_user().in_all.at(1) == 2);
}

TEST_CASE("a value that is no ticket is in no line, and takes one from there") {
  LabCopy copy;
  copy.read({.values = {{"/berth/1/ticket/desk-a", ticket_on("gpu1"), 3, 3}}, .revision = 3, .count = 1});
  copy.hear(Told{{{"/berth/1/ticket/desk-a", "nothing", 3, 4}, false}});
  CHECK(copy.queue().size() == 0);
  CHECK(copy.agrees({.values = {{"/berth/1/ticket/desk-a", "", 3, 4}}, .revision = 4, .count = 1}));
}

TEST_CASE("what is told late takes nothing back") {
  LabCopy copy;
  copy.read({.values = {}, .revision = 4, .count = 0});
  const auto put = [](const std::string& value) {
    LabChange change;
    change.puts.push_back({"/berth/1/alive/a", value});
    return change;
  };
  const auto told = [](const std::string& value, std::uint64_t revision) {
    return Told{{{"/berth/1/alive/a", value, 5, revision}, false}};
  };
  copy.hear(told("before all was read", 3));
  CHECK(copy.alive().empty());
  copy.made_here(put("first"), 5);
  copy.made_here(put("second"), 6);
  copy.hear(told("first", 5));
  CHECK(copy.alive().at("a") == "second");
  LabChange removal;
  removal.removed = {"/berth/1/alive/a"};
  copy.made_here(removal, 7);
  copy.hear(told("second", 6));
  CHECK(copy.alive().empty());
  copy.hear(Told{{{"/berth/1/alive/a", "", 0, 7}, true}});
  copy.hear(told("third", 8));
  CHECK(copy.alive().at("a") == "third");
}

TEST_CASE("a copy that was told late, and makes changes of its own, has in the end what the store has") {
  CHECK(rc::check([](const std::vector<std::uint8_t>& acts) {
    std::map<std::string, StoredValue> store;
    Told history;                 // what the watch tells, in its order
    std::vector<bool> was_known;  // by made_here, of each of them
    std::uint64_t revision = 1;
    LabCopy copy;
    std::size_t told = 0;
    const auto read = [&] {
      StoredRange all{.values = {}, .revision = revision, .count = store.size()};
      for (const auto& [key, value] : store) all.values.push_back(value);
      copy.read(all);
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
        copy.hear(Told(history.begin() + static_cast<std::ptrdiff_t>(told),
                       history.begin() + static_cast<std::ptrdiff_t>(until)));
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
        LabValue made = fmt::format("{}", revision);
        if (folder == "start") made = start_of(static_cast<std::int64_t>(revision));
        if (folder == "ticket") made = ticket_on(std::to_string(revision));
        const StoredValue value{key, made, known == store.end() ? revision : known->second.created, revision};
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
      if (is_known) copy.made_here(change, revision);
    }
    const auto has_all = [&] {
      std::map<std::string, std::size_t> keys{{"ticket", 0}, {"start", 0}, {"alive", 0}};
      bool is_same = true;
      for (const auto& [key, value] : store) {
        const std::string name = key.substr(key.rfind('/') + 1);
        const std::string folder = key.substr(kAllOfLab.size(), key.rfind('/') - kAllOfLab.size());
        ++keys[folder];
        if (folder == "ticket") {
          auto ticket = std::get<LabTicket>(value.value);
          ticket.id = name;
          ticket.order = value.created;
          is_same = is_same && copy.queue().find(name) == ticket;
        } else if (folder == "start") {
          const auto known = copy.starts().find(name);
          is_same =
              is_same && known != copy.starts().end() && known->second == std::get<LabStart>(value.value);
        } else {
          const auto known = copy.alive().find(name);
          is_same =
              is_same && known != copy.alive().end() && known->second == std::get<std::string>(value.value);
        }
      }
      return is_same && copy.queue().size() == keys["ticket"] && copy.starts().size() == keys["start"] &&
             copy.alive().size() == keys["alive"];
    };
    const auto agrees = [&] {
      StoredRange since{.values = {}, .revision = revision, .count = store.size()};
      for (const auto& [key, value] : store)
        if (value.changed > copy.revision()) since.values.push_back({key, "", value.created, value.changed});
      return copy.agrees(since);
    };
    if (agrees()) RC_ASSERT(has_all());
    copy.hear(Told(history.begin() + static_cast<std::ptrdiff_t>(told), history.end()));
    RC_ASSERT(has_all());
    RC_ASSERT(agrees());
  }));
}

TEST_CASE("a change that was made here is known at once, and what came before it where it came next") {
  LabCopy copy;
  copy.read({.values = {}, .revision = 4, .count = 0});
  LabChange change;
  change.puts.push_back({"/berth/1/ticket/desk-a", ticket_on("gpu1")});
  copy.made_here(change, 5);
  CHECK(copy.queue().find("desk-a")->order == 5);
  CHECK(copy.revision() == 5);
  change.puts.front().key = "/berth/1/ticket/desk-b";
  copy.made_here(change, 7);
  CHECK(copy.queue().find("desk-b")->order == 7);
  CHECK(copy.revision() == 5);
  copy.hear(Told{{{"/berth/1/ticket/desk2-a", ticket_on("gpu1"), 6, 6}, false}});
  CHECK(copy.queue().size() == 3);
}

TEST_CASE("one that has gone and one that has come, neither of them told, are not taken for what was known") {
  LabCopy copy;
  copy.read({.values = {{"/berth/1/ticket/desk-a", ticket_on("gpu1"), 3, 3}}, .revision = 3, .count = 1});
  LabChange change;
  change.puts.push_back({"/berth/1/ticket/desk-c", ticket_on("gpu1")});
  copy.made_here(change, 6);
  // What is earlier than this change may be unknown.
  CHECK(copy.revision() == 3);
  const StoredValue own{"/berth/1/ticket/desk-c", "", 6, 6};
  CHECK(copy.agrees({.values = {own}, .revision = 6, .count = 2}));
  CHECK(!copy.agrees({.values = {{"/berth/1/ticket/desk-b", "", 5, 5}, own}, .revision = 6, .count = 2}));
}

}  // namespace
}  // namespace berth::lab_queue::lab_copy_test
