#include "berth/hosts/model/caller_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "berth/base/text.h"
#include "berth/hosts/model/caller_deeds.h"
#include "berth/hosts/model/host_offer.h"

namespace berth::hosts::caller {
namespace {

using namespace std::chrono_literals;
using host_selection::HostState;

// Hosts that have made no offer by then are not waited for, where others have.
constexpr SteadyTime kPatienceForOffers = 3s;
// When the wait is over, an agent that has told no position yet is given so long to tell it, or to
// tell that the store does not answer: the agent waits 3 s for the store.
constexpr SteadyTime kPatienceForPosition = 5s;
// An agent that is started again is there by then. Without an agent a request has no position, so
// it does not wait for ever.
constexpr std::chrono::seconds kPatienceForAgent = 30s;

host_selection::Joining joining_of(const Setup& setup) {
  using enum host_selection::Joining;
  if (setup.has_lab) return setup.is_near ? as_opened_by_offers : as_opened;
  return setup.is_near ? by_offers : few_at_once;
}

/// A rule for each event.
class CallerRules : CallerDeeds {
 public:
  CallerRules(State state, SteadyTime now) : CallerDeeds(std::move(state), now) {}

  Step first(host_selection::Step step) && {
    take(std::move(step));
    return end();
  }
  Step step(const Event& what) && {
    const bool had_failed = state_.selection.failure.has_value();
    std::visit([this](const auto& each) { on(each); }, what);
    if (state_.selection.failure && !had_failed) act(Fail{*state_.selection.failure});
    return end();
  }

 private:
  // --- what hosts say. A message that is out of turn changes nothing.

  void on(const Hello& hello) {
    Link* link = link_of(hello.host);
    if (link == nullptr || !std::holds_alternative<Connecting>(*link)) return;
    if (const auto known = check_host_version(hello.version); !known) return leave(hello.host, known.error());
    *link = EnvoyAsked{};
    if (is(hello.host, HostState::asked))
      act(AskForOffer{hello.host});
    else
      act(AskToRun{hello.host});
  }

  void on(const Offered& offered) {
    if (!has_greeted(offered.host)) return;
    gather(state_.offers);
    // No connection is kept for as long as the request waits in the lab queue.
    if (has_lab() && is(offered.host, HostState::asked)) disconnect(offered.host);
    happen(offered.host, host_selection::Offered{offered.offer});
  }

  void on(const WaitsInQueue& waits) {
    if (Link* link = link_in_queue(waits.host);
        link != nullptr && std::holds_alternative<EnvoyAsked>(*link)) {
      *link = Waiting{};
      if (queued() != nullptr) act(TellJoined{waits.host});
    }
  }

  void on(const Grants& grants) {
    Link* link = link_in_queue(grants.host);
    if (link == nullptr || std::holds_alternative<Granting>(*link)) return;
    if (std::holds_alternative<EnvoyAsked>(*link) && queued() != nullptr) act(TellJoined{grants.host});
    *link = Granting{now_};
    gather(state_.grants);
  }

  void on(const Begins& begins) {
    if (state_.selection.chosen != begins.host || state_.selection.started) return;
    happen(begins.host, host_selection::Begins{});
    act(Serve{begins.host});
  }

  void on(const Cancelled& cancelled) {
    if (link_in_queue(cancelled.host) != nullptr || state_.selection.chosen == cancelled.host)
      act(EndCancelled{cancelled.host});
  }

  void on(const HostLost& lost) {
    if (link_of(lost.host) != nullptr) leave(lost.host, lost.why);
  }

  // --- what the agent says

  void on(const Entered&) {
    if (!std::holds_alternative<NotQueued>(state_.entry)) return;
    Queued queued{.since = now_};
    if (state_.wait) queued.until = now_ + *state_.wait;
    state_.entry = std::move(queued);
  }

  void on(const Dismissed& none) {
    if (!state_.selection.chosen) act(Fail{none.why});
  }

  void on(const AgentIsMissing& missing) {
    if (!has_obstacle(AgentMissing{missing.why, now_ + kPatienceForAgent}) || state_.wait == 0ms) return;
    tell(fmt::format("this request waits for the agent of this machine, {} s at most: {}",
                     kPatienceForAgent.count(), missing.why.message));
  }
  void on(const AgentIsThere&) {
    if (has_obstacle(Nothing{}) && state_.wait != 0ms) tell("the agent is there now");
  }

  void on(const StoreIsSilent& silent) {
    if (has_obstacle(StoreMissing{silent.why}))
      tell(
          fmt::format("the store of the lab does not answer, so nothing starts; this request keeps its "
                      "place: {}",
                      silent.why));
  }
  void on(const StoreAnswers&) {
    if (has_obstacle(Nothing{})) tell("the store of the lab answers again");
  }

  // False: the request has not entered the lab queue, so nothing is in its way there.
  bool has_obstacle(Obstacle obstacle) {
    Queued* entry = queued();
    if (entry == nullptr) return false;
    entry->obstacle = std::move(obstacle);
    return true;
  }

  // An opened host is connected. Its envoy then joins the queue without a further word.
  void on(const Opened& opened) {
    if (queued() == nullptr) return;
    for (const std::size_t host : hosts_named(opened.name)) happen(host, host_selection::Opened{});
  }

  // The agent waits for this answer, so it gets one also for a host that the request has left
  // before.
  void on(const Closed& closed) {
    if (queued() == nullptr || state_.selection.chosen) return;
    for (const std::size_t host : hosts_named(closed.name)) let_go(host);
  }

  void on(const Position& told) {
    Queued* entry = queued();
    if (entry == nullptr) return;
    entry->is_told = true;
    if (state_.links.empty() && told.position > 0)
      tell(fmt::format("waiting behind {} request{} in the queue of the lab", told.position,
                       told.position == 1 ? "" : "s"));
  }

  void on(const Limited& limited) {
    Queued* entry = queued();
    if (entry == nullptr) return;
    entry->limit = limited.why;
    if (!limited.why.empty()) tell(fmt::format("this request waits, because {}", limited.why));
  }

  // If this host was lost meanwhile, the agent was told so and takes the start back.
  void on(const MayStart& may) {
    const Queued* entry = queued();
    if (entry == nullptr || !entry->asked || name_of(*entry->asked) != may.name) return;
    const std::size_t host = *entry->asked;
    asks_no_more(host);
    happen(host, host_selection::AsksToStart{});
  }

  void tell(std::string sentence) { act(Tell{std::move(sentence)}); }

  // --- what is due

  void on(const NotSaid& not_said) { act(Fail{not_said.why}); }

  void on(const Settled&) {
    leave_silent_hosts();
    if (const auto* missing = agent_given_up()) return act(Fail{missing->why});
    end_offers();
    choose();
    give_up_unopened();
    if (actions_.empty() && awaited_.empty()) act(Sleep{next_due()});
  }

  void leave_silent_hosts() {
    std::vector<std::size_t> silent;
    for (const auto& [host, link] : state_.links)
      if (const auto* connecting = std::get_if<Connecting>(&link); connecting && now_ >= connecting->until)
        silent.push_back(host);
    for (const std::size_t host : silent) leave(host, why_silent(state_.selection.hosts[host].host, false));
  }

  // nullptr: it is there, or still waited for.
  const AgentMissing* agent_given_up() const {
    const Queued* entry = queued();
    const auto* missing = entry != nullptr ? std::get_if<AgentMissing>(&entry->obstacle) : nullptr;
    return missing != nullptr && now_ >= missing->until && !state_.selection.chosen ? missing : nullptr;
  }

  void end_offers() {
    if (const auto* gathering = std::get_if<Gathering>(&state_.offers);
        gathering && now_ >= gathering->until) {
      state_.offers = Open{};
      happen(0, host_selection::FirstOffers{});
    }
    if (waits_for_offers() && now_ >= state_.began + kPatienceForOffers)
      happen(0, host_selection::EnoughOffers{});
  }

  bool waits_for_offers() const {
    return state_.selection.joining != host_selection::Joining::as_opened &&
           state_.selection.patience != host_selection::OfferPatience::none && !state_.selection.chosen;
  }

  void choose() {
    Queued* entry = queued();
    if (state_.selection.chosen || (entry != nullptr && entry->asked)) return;
    std::vector<std::size_t> granting;
    bool may_others = false;  // grant it at once, too
    for (const auto& [host, link] : state_.links) {
      if (std::holds_alternative<Granting>(link))
        granting.push_back(host);
      else if (is(host, HostState::in_queue) && !std::holds_alternative<Waiting>(link))
        may_others = true;
    }
    if (granting.empty()) return;
    const auto* gathering = std::get_if<Gathering>(&state_.grants);
    if (gathering != nullptr && may_others && now_ < gathering->until) return;
    state_.grants = Open{};
    const std::size_t host = host_selection::tightest(state_.selection, granting);
    if (!has_lab()) return happen(host, host_selection::AsksToStart{});
    if (entry == nullptr) return;
    act(AskToStart{host});
    entry->asked = host;
  }

  void give_up_unopened() {
    const Queued* entry = queued();
    if (entry == nullptr || state_.selection.chosen || !entry->until || now_ < *entry->until) return;
    const bool is_known = entry->is_told || std::holds_alternative<StoreMissing>(entry->obstacle);
    if (!is_known && now_ < *entry->until + kPatienceForPosition) return;
    const Error why = why_unopened(*entry);
    // Where the last of them is left, others become awaited, with a time of their own.
    std::vector<std::size_t> unopened;
    for (std::size_t host = 0; host < state_.selection.hosts.size(); ++host)
      if (is(host, HostState::awaited)) unopened.push_back(host);
    for (const std::size_t host : unopened) leave(host, why);
  }

  std::optional<SteadyTime> next_due() const {
    std::optional<SteadyTime> next;
    const auto at_latest = [&](SteadyTime at) {
      if (at > now_) next = std::min(next.value_or(at), at);
    };
    for (const auto& [host, link] : state_.links)
      if (const auto* connecting = std::get_if<Connecting>(&link)) at_latest(connecting->until);
    for (const Window* window : {&state_.offers, &state_.grants})
      if (const auto* gathering = std::get_if<Gathering>(window)) at_latest(gathering->until);
    if (waits_for_offers()) at_latest(state_.began + kPatienceForOffers);
    if (const Queued* entry = queued()) {
      if (const auto* missing = std::get_if<AgentMissing>(&entry->obstacle)) at_latest(missing->until);
      if (entry->until) at_latest(*entry->until);
      if (entry->until) at_latest(*entry->until + kPatienceForPosition);
    }
    return next;
  }
};

}  // namespace

std::optional<Event> said_by_agent(std::string_view word, const std::string& rest) {
  if (word == "open") return Opened{rest};
  if (word == "close") return Closed{rest};
  if (word == "limit") return Limited{printable(rest)};
  if (word == "yes") return MayStart{rest};
  if (word == "place") {
    std::size_t position = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), position);
    return Position{position};
  }
  if (word == "silent") return StoreIsSilent{printable(rest)};
  if (word == "heard") return StoreAnswers{};
  if (word == "no")
    return Dismissed{{ErrorCode::failure, fmt::format("the queue of the lab: {}", printable(rest))}};
  return std::nullopt;
}

Step begin(Setup setup, SteadyTime now) {
  State state{.began = now, .wait = setup.wait};
  if (setup.has_lab) state.entry = NotQueued{};
  const auto joining = joining_of(setup);
  return CallerRules(std::move(state), now)
      .first(host_selection::begin(std::move(setup.request), setup.hosts, joining));
}

Step next(State state, const TimedEvent& event) {
  return CallerRules(std::move(state), event.now).step(event.what);
}

}  // namespace berth::hosts::caller
