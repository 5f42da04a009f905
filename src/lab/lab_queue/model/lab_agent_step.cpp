#include "berth/lab_queue/model/lab_agent_step.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "berth/lab_queue/model/agent_deeds.h"
#include "berth/lab_queue/model/lab_copy.h"

namespace berth::lab_queue::lab_agent {
namespace {

using namespace std::chrono_literals;
using lab_queue::LabChange;

/// A machine from which nobody has heard for so long: what it has left is removed. If it comes
/// back, its agent writes the requests again that still wait there.
constexpr auto kGoneForGood = 24h;
/// In which those who waited here before this agent started may come back to their entries.
constexpr auto kComingBack = 30s;
/// etcd may make a change for so long after it was asked for and has not answered.
constexpr auto kLateChange = 10s;
/// Where the watch says nothing: for what hangs on the time alone.
constexpr auto kRound = 5s;
constexpr auto kIdleRound = 10s;
/// For which what was read is kept up to date after the last one who waited here.
constexpr auto kKeptReading = 60s;
/// A user who has used up what the user may write may write again a little later.
constexpr auto kPutOff = 1s;
constexpr auto kAfterFault = 1s;
constexpr auto kLongestAfterFault = 8s;

/// When the store is asked what. A rule for each event.
class RoundRules {
 public:
  RoundRules(State& state, const StepInput& given) : deeds_{state, given}, state_(state), now_(given.now) {}

  std::vector<Action> step(const Event& what) && {
    std::visit([this](const auto& each) { on(each); }, what);
    return std::move(deeds_.actions);
  }

 private:
  // --- what has happened

  void on(const Came& came) { state_.clients.emplace(came.client, Client{came.pid, came.uid}); }

  void on(const Said& said) {
    if (deeds_.client(said.client) == nullptr) return;
    hear(deeds_, said.client, said.line);
    ring();
  }

  void on(const Ended& ended) {
    if (deeds_.client(ended.client) == nullptr) return;
    deeds_.forget(ended.client, true);
    ring();
  }

  void on(const LimitsKnown& known) {
    QueueEntry* entry = deeds_.entry_of(known.client);
    if (entry == nullptr) return;
    entry->limits = LimitsOf{known.asker};
    deeds_.limit(known.client);
    ring();
  }

  void on(const News&) {
    const bool is_to_show = state_.board && !std::exchange(state_.board->has_news, true);
    if (is_to_show || deeds_.somebody_waits()) ring();
  }

  /// In the middle of a round no answer comes any more: the loop has lost it.
  void on(const Woke&) {
    if (is(Rests{})) return begin_round();
    on(NotAnswered{"its answer was lost"});
  }

  void on(const IsPresent& present) {
    if (!is(Appears{})) return;
    state_.renewal = present.renewal;
    take_away();
  }

  void on(const Changed& changed) {
    if (const auto* removes = std::get_if<Removes>(&state_.round)) {
      state_.removals.erase(removes->id);
      take_away();
    } else if (is(Registers{})) {
      register_next();
    } else if (const auto* settles = std::get_if<Settles>(&state_.round)) {
      state_.again = true;
      if (changed.made && deeds_.entry_of(settles->now) != nullptr)
        has_settled(deeds_, settles->now, settles->purpose);
      settle_next();
    }
  }

  void on(const IsRead& read) {
    if (!is(Reads{})) return;
    if (read.all) return use_copy();
    state_.again = true;
    end_round();
  }

  void on(const NotAnswered& silent) {
    if (is(Rests{})) return;
    state_.looks_since.reset();
    // The store may still make the change later, when the connection has ended and its entries were
    // removed.
    if (is(Registers{}) || is(Settles{}))
      state_.sweep_at = std::max(state_.sweep_at.value_or(SteadyTime{}), now_ + kLateChange);
    const std::string_view url = deeds_.given.url;
    if (state_.fault.empty())
      log(fmt::format("the store at {} does not answer, and all requests keep their positions: {}", url,
                      silent.why));
    state_.fault = fmt::format("{}: {}", url, silent.why);
    for (auto& [id, each] : state_.clients)
      if (each.entry) tell_silence(deeds_, id, *each.entry);
    deeds_.act(AskAnother{});
    report(deeds_);
    rest(now_ + pause_after(state_.faults++));
  }

  /// Twice as long each time, and up to half as long again, by chance: if all the agents of a large
  /// lab came back at once, and at the same moment, a store that is too slow would stay so.
  SteadyTime pause_after(unsigned faults) const {
    const std::chrono::milliseconds pause =
        faults < 3 ? kAfterFault * (1U << faults) : std::chrono::milliseconds(kLongestAfterFault);
    const std::size_t chance = std::hash<std::string>{}(fmt::format("{} {}", state_.settings.name, faults));
    return pause + pause / 2 * static_cast<int>(chance % 100) / 100;
  }

  // --- rounds

  /// Something has come that the next round is to see. While the store does not answer, it comes in
  /// its time.
  void ring() {
    state_.again = true;
    if (is(Rests{}) && state_.fault.empty()) begin_round();
  }

  void begin_round() {
    state_.round = Appears{};
    state_.again = false;
    if (state_.renewal && now_ < *state_.renewal) return take_away();
    deeds_.act(Appear{.anew = !state_.renewal});
  }

  /// The entries of those who have gone.
  void take_away() {
    if (state_.removals.empty()) return look();
    const std::string& id = *state_.removals.begin();
    state_.round = Removes{id};
    change({.removed = {lab_queue::key_of(lab_queue::kLabTickets, id),
                        lab_queue::key_of(lab_queue::kLabStarts, id)}});
  }

  void look() {
    const bool has_to_sweep = state_.sweep_at && now_ >= *state_.sweep_at;
    if (deeds_.somebody_looks() || has_to_sweep || state_.board || deeds_.somebody_waits()) {
      state_.needed = now_;
    } else {
      if (now_ > state_.needed + kKeptReading) {
        deeds_.act(Forget{});
        state_.looks_since = std::nullopt;
      }
      return end_round();
    }
    for (const ClientId each : deeds_.clients()) deeds_.limit(each);
    // The fair number of a new request depends on the numbers of the others.
    if (!deeds_.given.is_unread || has_numbers(state_.settings.order)) return read();
    state_.round = Registers{deeds_.clients()};
    register_next();
  }

  void register_next() {
    auto& rest = std::get<Registers>(state_.round).rest;
    while (!rest.empty()) {
      const QueueEntry* next = ready(rest.front());
      rest.pop_front();
      if (next == nullptr || !std::holds_alternative<WaitsForHosts>(next->stage)) continue;
      LabChange put = put_ticket(*next, 0);
      if (may_write(*next, put)) return change(std::move(put));
    }
    read();
  }

  void read() {
    state_.round = Reads{};
    deeds_.act(Read{.in_any_case = deeds_.somebody_looks()});
  }

  void use_copy() {
    // If the store was wiped or set back, it has lost the heartbeat of this agent too.
    if (!store().alive().contains(state_.settings.name)) state_.renewal.reset();
    sweep();
    if (!state_.removals.empty()) state_.again = true;
    state_.round = Settles{.rest = deeds_.clients()};
    state_.has_put_off = false;
    settle_next();
  }

  void settle_next() {
    auto& settles = std::get<Settles>(state_.round);
    while (!settles.rest.empty()) {
      settles.now = settles.rest.front();
      settles.rest.pop_front();
      QueueEntry* entry = ready(settles.now);
      if (entry == nullptr) continue;
      state_.patience.skip(*entry, now_);
      if (auto writes = settle(deeds_, settles.now); writes && may_write(*entry, writes->change)) {
        settles.purpose = std::move(writes->purpose);
        return change(std::move(writes->change));
      }
    }
    tell_openings(deeds_);
    end_round();
  }

  void end_round() {
    if (!std::exchange(state_.fault, "").empty())
      log(fmt::format("the store at {} answers again", deeds_.given.url));
    state_.faults = 0;
    tell_return(deeds_);
    report(deeds_);
    if (state_.again) return begin_round();
    SteadyTime until = now_ + (deeds_.somebody_waits() ? kRound : kIdleRound);
    const auto at_latest = [&](std::optional<SteadyTime> at) { until = std::min(until, at.value_or(until)); };
    at_latest(state_.renewal.value_or(now_ + kAfterFault));
    at_latest(state_.sweep_at);
    if (state_.has_put_off) at_latest(now_ + kPutOff);
    if (state_.board) at_latest(next_show(*state_.board, now_));
    for (const auto& [id, each] : state_.clients) {
      if (!each.entry) continue;
      at_latest(state_.patience.next(*each.entry));
      at_latest(each.entry->names_late());
    }
    rest(std::max(until, now_));
  }

  void rest(SteadyTime until) {
    state_.round = Rests{};
    deeds_.act(Rest{until});
  }

  /// Tickets that a killed agent left here, or that were written late, and those of machines that
  /// do not come back.
  void sweep() {
    const SteadyTime looks_since = state_.looks_since.value_or(now_);
    state_.looks_since = looks_since;
    for (const auto& [home, since] : state_.silent_since)
      if (now_ > std::max(since, looks_since) + kGoneForGood) remove_all_of(home, {});
    if (now_ < state_.began + kComingBack) return;
    if (state_.sweep_at && now_ >= *state_.sweep_at) state_.sweep_at.reset();
    const std::string& home = state_.settings.name;
    std::set<std::string, std::less<>> here;
    for (const auto& [id, each] : state_.clients)
      if (each.entry) here.insert(each.entry->kept.id);
    remove_all_of(home, here);
  }

  void remove_all_of(std::string_view home, const std::set<std::string, std::less<>>& kept) {
    for (const std::string& id : store().queue().of_home(home))
      if (!kept.contains(id)) state_.removals.insert(id);
    for (const auto& [id, start] : store().starts())
      if (home_of(id) == home && !kept.contains(id)) state_.removals.insert(id);
  }

  // --- the step

  /// Its entry, if it is known which limits apply to it. nullptr: it is not, or it has none.
  QueueEntry* ready(ClientId id) const {
    QueueEntry* entry = deeds_.entry_of(id);
    return entry != nullptr && entry->is_ready() ? entry : nullptr;
  }
  bool may_write(const QueueEntry& entry, const LabChange& change) {
    const bool may = state_.allowance.take(entry.kept.uid, weight_of(change), now_);
    state_.has_put_off = state_.has_put_off || !may;
    return may;
  }
  template <class Stage>
  bool is(const Stage&) const {
    return std::holds_alternative<Stage>(state_.round);
  }
  const lab_queue::LabCopy& store() const { return deeds_.given.store; }
  void change(LabChange change) { deeds_.act(Change{std::move(change)}); }
  void log(std::string line) { deeds_.act(Log{std::move(line)}); }

  AgentDeeds deeds_;
  State& state_;
  SteadyTime now_;
};

}  // namespace

State begin(Settings settings, SteadyTime now) {
  State state{.settings = std::move(settings)};
  if (state.settings.shows) state.board = Board{};
  state.began = now;
  state.sweep_at = now + kComingBack;
  return state;
}

std::vector<Action> next(State& state, const StepInput& given, const Event& what) {
  return RoundRules(state, given).step(what);
}

}  // namespace berth::lab_queue::lab_agent
