#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/hosts/model/caller_step.h"
#include "berth/hosts/model/host_offer.h"

// A request at a desk and its hosts, without a process.
namespace berth::caller_test {

using namespace hosts::caller;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

inline constexpr SteadyTime kBegin = 1000s;
inline const Offer kAtOnce{.possible = 1, .free = 1, .at_once = true};
inline const Offer kThere{.possible = 1, .near = true};
inline const Offer kElsewhere{.possible = 1, .free = 1, .at_once = true, .near = false};
inline const Error kHungUp{ErrorCode::failure, "the connection is lost"};

/// A request at a desk. The hosts are gpu0, gpu1 and so on. What comes to the desk is told to the
/// step, and `did` is what the desk did.
class Desk {
 public:
  explicit Desk(std::size_t hosts, const std::function<void(Setup&)>& is_so = [](Setup&) {}) {
    Setup setup;
    for (std::size_t i = 0; i < hosts; ++i) setup.hosts.push_back(fmt::format("gpu{}", i));
    is_so(setup);
    names_ = setup.hosts;
    take(begin(std::move(setup), now));
    settle();
  }

  /// What it does when this has come.
  Words is(Event what) {
    did.clear();
    answers_.push_back(std::move(what));
    settle();
    return did;
  }
  Words passes(SteadyTime time) {
    did.clear();
    now += time;
    settle();
    return did;
  }
  Words greets(std::size_t host) { return is(Hello{host, std::string(version())}); }
  /// All hosts that are connected.
  Desk& all_greet() {
    const auto connected = state.links;
    for (const auto& each : connected) greets(each.first);
    return *this;
  }
  /// The host is opened, greets, and grants the request.
  Words grants_once_opened(std::size_t host) {
    is(Opened{name_in_lab(names_[host])});
    greets(host);
    return is(Grants{host});
  }

  State state{};
  SteadyTime now = kBegin;
  Words did{};
  std::optional<SteadyTime> sleeps_until{};
  bool has_ended = false;
  bool disk_is_full = false;

  /// What is checked of each deed.
  std::function<void(const Action&)> check = [](const Action&) {};

 private:
  // As the loop: answers first, and then it looks what is due.
  void settle() {
    bool sleeps = false;
    while (!has_ended && !sleeps) {
      if (answers_.empty()) {
        sleeps = take(next(std::move(state), {now, Settled{}}));
        continue;
      }
      const Event what = std::move(answers_.front());
      answers_.pop_front();
      take(next(std::move(state), {now, what}));
    }
  }

  // True: it sleeps.
  bool take(Step step) {
    state = std::move(step.state);
    for (const Action& action : step.actions) {
      if (has_ended) return true;
      check(action);
      std::visit([this](const auto& what) { perform(what); }, action);
    }
    return !step.actions.empty() && std::holds_alternative<Sleep>(step.actions.back());
  }

  void does(std::string_view what, std::size_t host) {
    did.push_back(fmt::format("{} {}", what, names_[host]));
  }
  void perform(const Connect& what) { does("connects", what.host); }
  void perform(const AskForOffer& what) { does("asks what it can have on", what.host); }
  void perform(const AskToRun& what) { does("asks for GPUs on", what.host); }
  void perform(const SayJoin& what) { does("joins", what.host); }
  void perform(const SayYes& what) {
    if (!disk_is_full) return does("says yes to", what.host);
    answers_.emplace_back(NotSaid{{ErrorCode::failure, "the disk is full"}});
  }
  void perform(const Disconnect& what) { does("leaves", what.host); }
  void perform(const EnterLabQueue& what) {
    std::vector<std::string> named;
    for (const std::size_t host : what.hosts) named.push_back(names_[host]);
    did.push_back(fmt::format("takes a place for {}", fmt::join(named, ", ")));
    answers_.emplace_front(Entered{});
  }
  void perform(const TellJoined& what) { does("tells that it waits on", what.host); }
  void perform(const TellLeft& what) { does("tells that it has left", what.host); }
  void perform(const TellClosed& what) { does("tells that nothing starts on", what.host); }
  void perform(const AskToStart& what) { does("asks whether to start on", what.host); }
  void perform(const Tell& what) { did.push_back("says: " + what.sentence); }
  void perform(const TellOut& what) {
    did.push_back(fmt::format("says: without {}: {}", names_[what.host], what.why));
  }
  void perform(const Serve& what) {
    does("passes the streams of", what.host);
    served_ = true;
  }
  void perform(const EndCancelled& what) {
    does("ends as cancelled on", what.host);
    has_ended = true;
  }
  void perform(const Fail& what) {
    did.push_back(fmt::format("fails: {}", what.why.message));
    code = what.why.code;
    has_ended = true;
  }
  void perform(const Sleep& what) { sleeps_until = what.until; }

  std::vector<std::string> names_{};
  std::deque<Event> answers_{};
  bool served_ = false;

 public:
  std::optional<ErrorCode> code{};  ///< with which it has failed
  bool has_served() const { return served_; }
};

inline void with_lab(Setup& setup) {
  setup.has_lab = true;
}
inline void with_lab_and_path(Setup& setup) {
  setup.has_lab = setup.is_near = true;
}
inline std::function<void(Setup&)> with_lab_for(SteadyTime wait) {
  return [wait](Setup& setup) {
    setup.has_lab = true;
    setup.wait = wait;
  };
}

}  // namespace berth::caller_test
