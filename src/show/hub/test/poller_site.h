#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <utility>

#include "berth/hub/model/poller_step.h"

// A hub and its hosts, without a network.
namespace berth::poller_test {

using namespace hub::poller;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

inline constexpr std::size_t kKiB = 1U << 10U;
inline constexpr std::size_t kMiB = 1U << 20U;
inline constexpr std::size_t kShort = kKiB;  ///< what a host tells, unless a case says otherwise
inline const std::string kNoRoom =
    "what it tells is not shown: with that of all others it would take more than 64 MiB";
inline const std::string kNoMemory = "what it answers cannot be dealt with here for want of memory";

inline std::string in(SteadyTime time) {
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

  Words is(Event what) {
    did.clear();
    take(std::move(what));
    return did;
  }
  /// All that rings until then is told to the step.
  Words passes(SteadyTime time) {
    did.clear();
    const SteadyTime end = now + time;
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
    return is(HostRead{ids.at(name), true, true, bytes, std::move(tag)});
  }
  /// It answers with what it told before: 304, or the same text again.
  Words tells_the_same(const std::string& name, std::optional<std::string> tag = {}) {
    return is(HostRead{ids.at(name), true, false, 0, std::move(tag)});
  }
  Words fails(const std::string& name) { return is(HostRead{ids.at(name), false, false, kShort}); }
  Words fails_again(const std::string& name) { return is(HostRead{ids.at(name), false, false, 0}); }
  Words lacks_memory(const std::string& name) { return is(AnswerLost{ids.at(name)}); }
  /// The first of the pages that are being made is ready.
  Words makes() { return is(Made{first_page()}); }
  Words cannot_make() { return is(NotMade{first_page(), "no memory"}); }

  State state{};
  SteadyTime now = 1000s;
  double chance = 0.5;
  Words did{};
  std::map<std::string, HostId> ids{};
  std::map<HostId, std::string> names_of{};
  std::map<HostId, SteadyTime> bells{};
  std::optional<SteadyTime> page_bell{};
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

  std::optional<std::pair<SteadyTime, Event>> first_bell() const {
    std::optional<std::pair<SteadyTime, Event>> first;
    for (const auto& [id, at] : bells)
      if (!first || at < first->first) first.emplace(at, Due{id});
    if (page_bell && (!first || *page_bell < first->first)) first.emplace(*page_bell, PageDue{});
    return first;
  }

  void take(Event what) {
    events_.push_back(std::move(what));
    if (events_.size() > 1) return;
    for (; !events_.empty(); events_.pop_front()) {
      const Event& each = events_.front();
      for (const Action& action : next(state, {now, chance, each})) {
        check(action);
        std::visit([this](const auto& deed) { perform(deed); }, action);
      }
    }
  }

  void does(std::string words) { did.push_back(std::move(words)); }
  const std::string& name(HostId id) const { return names_of.at(id); }

  void perform(const Ask& what) {
    std::string words = what.connection == ConnectionAge::fresh ? "connects to {}, and asks it" : "asks {}";
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
    take(HostRead{what.host, false, false, has_memory_for_refusals ? kShort : 0});
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

  std::deque<Event> events_{};
  HostId last_id_ = 0;
};

/// Hosts that were all heard, and rest.
inline Site settled(const Words& hosts) {
  Site site;
  site.names(hosts);
  for (const std::string& name : hosts) site.tells(name);
  return site;
}

inline const Words kPublishes{"makes a page", "publishes it"};

inline std::string first_of(const Words& words) {
  return words.empty() ? "" : words.front();
}

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace berth::poller_test
