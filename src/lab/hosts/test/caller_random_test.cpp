#include "berth/hosts/model/caller_step.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "berth/hosts/test/caller_desk.h"
#include "property.h"

namespace berth::caller_test::caller_random_test {

namespace {

/// A desk, the agent of its machine, and hosts, of which any may lie, repeat itself, be late or be
/// lost.
class AnyDay {
 public:
  void go() {
    hosts_ = static_cast<std::size_t>(1 + below(6));
    has_lab_ = below(2) == 1;
    Desk desk(0 + hosts_, [this](Setup& setup) {
      setup.has_lab = has_lab_;
      setup.is_near = below(2) == 1;
      if (below(3) == 0) setup.wait = std::chrono::seconds(below(20));
    });
    note_beginning(desk);
    desk.check = [this](const Action& action) {
      std::visit([this](const auto& what) { check(what); }, action);
    };
    const int events = below(60);
    for (int i = 0; i < events && !desk.has_ended; ++i) {
      if (below(3) == 0)
        any_event(desk);
      else
        next_event(desk, any_host());
      check_all(desk);
    }
    let_all_be_well(desk);
  }

 private:
  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  std::size_t any_host() const { return static_cast<std::size_t>(below(static_cast<int>(hosts_))); }
  static std::string name_of(std::size_t host) { return fmt::format("gpu{}", host); }

  // The first deeds came before anybody looked.
  void note_beginning(const Desk& desk) {
    for (const auto& each : desk.state.links) connected_.insert(each.first);
    if (!std::holds_alternative<Queued>(desk.state.entry)) return;
    for (std::size_t host = 0; host < hosts_; ++host) placed_.insert(host);
  }

  // --- what comes

  // What is next where nobody lies.
  void next_event(Desk& desk, std::size_t host) {
    if (below(5) == 0) return (void)desk.passes(std::chrono::milliseconds(below(500)));
    if (asks_ && !yes_) {
      if (below(2) == 0) return tell(desk, MayStart{name_of(*asks_)});
      if (below(2) == 0) return tell(desk, HostLost{*asks_, any_reason()});
    }
    if (!connected_.contains(host)) return tell(desk, Opened{name_of(host)});
    if (!greeted_.contains(host)) return tell(desk, Hello{host, std::string(version())});
    if (!asked_.contains(host)) return tell(desk, Offered{host, any_offer()});
    if (yes_ == host) return tell(desk, Begins{host});
    tell(desk, below(3) == 0 ? Event(WaitsInQueue{host}) : Grants{host});
  }

  void any_event(Desk& desk) {
    const std::size_t host = any_host();
    switch (below(16)) {
      case 0:
        return tell(desk, Hello{host, below(8) == 0 ? "0.0.1" : std::string(version())});
      case 1:
        return tell(desk, Hello{host, std::string(version())});
      case 2:
        return tell(desk, Offered{host, any_offer()});
      case 3:
        return tell(desk, WaitsInQueue{host});
      case 4:
      case 5:
        return tell(desk, Grants{host});
      case 6:
        return tell(desk, Begins{host});
      case 7:
        return tell(desk, HostLost{host, any_reason()});
      case 8:
      case 9:
        return tell(desk, Opened{name_of(host)});
      case 10:
        return tell(desk, Closed{name_of(host)});
      case 11:
      case 12:
        return tell(desk, MayStart{name_of(host)});
      case 13:
        return tell(desk, below(2) == 0 ? Event(StoreIsSilent{"why"}) : StoreAnswers{});
      case 14:
        return tell(desk,
                    below(2) == 0 ? Event(Position{static_cast<std::size_t>(below(3))}) : Limited{"why"});
      default:
        desk.passes(std::chrono::milliseconds(below(25000)));
    }
  }

  Offer any_offer() const {
    return {.possible = static_cast<std::size_t>(below(3)),
            .free = static_cast<std::size_t>(below(3)),
            .at_once = below(2) == 0,
            .near = below(2) == 0};
  }
  static Error any_reason() {
    return {*rc::gen::element(ErrorCode::failure, ErrorCode::not_now, ErrorCode::timed_out,
                              ErrorCode::impossible),
            "why"};
  }

  void tell(Desk& desk, const Event& what) {
    std::visit([this](const auto& each) { note(each); }, what);
    desk.is(what);
    // No start is neither taken nor given back.
    RC_ASSERT(!start_ || yes_ == start_);
  }

  // The lease is there once a host grants what it was asked for.
  void note(const Grants& grants) {
    if (asked_.contains(grants.host)) claims_.insert(grants.host);
  }
  // The agent writes a start only if it was asked for it. If that was taken back, it takes back the
  // start too.
  void note(const MayStart& may) {
    if (asks_ && name_of(*asks_) == may.name) start_ = asks_;
  }
  void note(const Hello& hello) {
    if (hello.version == version() && connected_.contains(hello.host)) greeted_.insert(hello.host);
  }
  template <class Other>
  void note(const Other&) {}

  // --- what the desk does

  void check(const Connect& what) { RC_ASSERT(connected_.insert(what.host).second); }
  void check(const Disconnect& what) {
    RC_ASSERT(connected_.erase(what.host) == 1);
    for (auto* each : {&greeted_, &asked_, &claims_}) each->erase(what.host);
  }
  void check(const AskForOffer& what) { RC_ASSERT(greeted_.contains(what.host)); }
  void check(const AskToRun& what) {
    RC_ASSERT(greeted_.contains(what.host));
    RC_ASSERT(asked_.insert(what.host).second);
  }
  void check(const SayJoin& what) {
    RC_ASSERT(greeted_.contains(what.host));
    RC_ASSERT(asked_.insert(what.host).second);
  }
  // One yes, and none without a claim.
  void check(const SayYes& what) {
    RC_ASSERT(!yes_);
    RC_ASSERT(claims_.contains(what.host));
    RC_ASSERT(!has_lab_ || start_ == what.host);
    yes_ = what.host;
  }
  // The place is not lost while the request waits for any of its hosts.
  void check(const EnterLabQueue& what) {
    RC_ASSERT(placed_.empty());
    RC_ASSERT(connected_.empty() || !what.hosts.empty());
    placed_.insert(what.hosts.begin(), what.hosts.end());
    asks_.reset();
  }
  void check(const TellJoined& what) { RC_ASSERT(asked_.contains(what.host)); }
  void check(const TellLeft& what) {
    placed_.erase(what.host);
    take_back(what.host);
  }
  void check(const TellClosed& what) { take_back(what.host); }
  void check(const AskToStart& what) {
    RC_ASSERT(has_lab_ && !asks_ && !yes_);
    RC_ASSERT(claims_.contains(what.host) && placed_.contains(what.host));
    asks_ = what.host;
  }
  void check(const Serve& what) { RC_ASSERT(yes_ == what.host); }
  template <class Other>
  void check(const Other&) {}

  void take_back(std::size_t host) {
    if (yes_) return;
    if (asks_ == host) asks_.reset();
    if (start_ == host) start_.reset();
  }

  void check_all(const Desk& desk) const {
    if (desk.has_ended) return;
    // Somebody will end its sleep.
    RC_ASSERT(desk.sleeps_until || !connected_.empty() || !placed_.empty());
    for (const auto& [host, link] : desk.state.links) {
      RC_ASSERT(connected_.contains(host));
      if (const auto* connecting = std::get_if<Connecting>(&link))
        RC_ASSERT(desk.now < connecting->until &&
                  desk.sleeps_until.value_or(SteadyTime::max()) <= connecting->until);
    }
    // The store is asked for a host that has a claim, and for no other.
    RC_ASSERT((!asks_ || claims_.contains(*asks_)));
  }

  // From here on nobody lies, and nothing is lost. What has claims begins.
  void let_all_be_well(Desk& desk) {
    for (int round = 0; round < 100 && !desk.has_ended && !desk.has_served(); ++round) {
      for (std::size_t host = 0; host < hosts_; ++host) {
        if (desk.has_ended || desk.has_served()) break;
        if (placed_.contains(host) && !yes_) tell(desk, Opened{name_of(host)});
        if (connected_.contains(host)) tell(desk, Hello{host, std::string(version())});
        if (connected_.contains(host) && !asked_.contains(host)) tell(desk, Offered{host, kAtOnce});
        if (asked_.contains(host) && !yes_) tell(desk, Grants{host});
        if (asks_ == host) tell(desk, MayStart{name_of(host)});
        if (yes_ == host) tell(desk, Begins{host});
      }
      if (!desk.has_ended && !desk.has_served()) desk.passes(1s);
    }
    RC_ASSERT(desk.has_ended || desk.has_served());
    RC_ASSERT(!desk.has_served() || yes_);
  }

  std::size_t hosts_ = 1;
  bool has_lab_ = false;
  std::set<std::size_t> connected_, greeted_;
  std::set<std::size_t> asked_;   ///< those that have the request in their queues
  std::set<std::size_t> claims_;  ///< those that have leased their GPUs for it
  std::set<std::size_t> placed_;  ///< those for which it waits in the lab queue
  std::optional<std::size_t> asks_, start_, yes_;
};

}  // namespace

TEST_CASE(
    "whatever is said, late, lost or told again, there is no yes without a claim, and no start is lost") {
  holds_for_any("any day", [] { AnyDay().go(); });
}

}  // namespace berth::caller_test::caller_random_test
