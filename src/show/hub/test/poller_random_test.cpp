#include "berth/hub/model/poller_step.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "berth/hub/test/poller_site.h"
#include "property.h"

namespace berth::poller_test::poller_random_test {

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
      for (const HostId id : std::set(asked_)) answer(id, HostRead{id, true, true, kShort});
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
        return answer(id, AnswerLost{id});
      case 1:
        return answer(id, Unreadable{id, "x"});
      case 2:
        return (void)site_.is(Due{id});
      case 3:
        return (void)site_.is(PageDue{});
      case 4:
        return answer(id, HostRead{id, !one_in(2), false, one_in(2) ? kShort : 0});
      default:
        return answer(id, HostRead{id, true, true, kMiB * static_cast<std::size_t>(1 + below(10)), "t"});
    }
  }

  void answer(HostId id, Event what) {
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
  static std::size_t entry_of(const PolledHost& host) {
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
  holds_for_any("any day", [] { AnyDay().go(); });
}

}  // namespace berth::poller_test::poller_random_test
