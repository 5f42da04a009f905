#include "berth/lab_queue/model/store_agent.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/lab_queue/model/lab_changes.h"
#include "berth/lab_queue/model/lab_words.h"

namespace berth::store_agent {
namespace {

using namespace std::chrono_literals;
using lab_queue::LabChange;

/// A home from which nobody has heard for so long is passed over. It is counted here: the store has
/// no clock.
constexpr auto kSilence = 30s;
/// In which those who waited here before this agent started may come back to their places.
constexpr auto kComingBack = 30s;
/// etcd may make a change for so long after it was asked for and has not answered.
constexpr auto kLateChange = 10s;
/// A client that does not answer `close` within this time runs an older Berth, which does not know
/// the word.
constexpr auto kClosing = 10s;
/// Where the watch says nothing: for what hangs on the time alone.
constexpr auto kRound = 5s;
constexpr auto kIdleRound = 10s;
/// For which what was read is kept up to date after the last one who waited here.
constexpr auto kKeptReading = 60s;
constexpr auto kAfterFault = 1s;
constexpr auto kPatienceForNames = 3s;
constexpr auto kBetweenShows = 1s;
/// Which requests are skipped depends on the time as well.
constexpr auto kWithoutNews = 5s;

class AgentRules {
 public:
  AgentRules(State& state, const Given& given) : state_(state), given_(given), now_(given.now) {}

  std::vector<Action> step(const What& what) && {
    std::visit([this](const auto& each) { on(each); }, what);
    return std::move(actions_);
  }

 private:
  // --- what has happened

  void on(const Came& came) { state_.clients.emplace(came.client, Client{came.pid, came.uid}); }

  void on(const Said& said) {
    if (client(said.client) == nullptr) return;
    std::visit([&](const auto& words) { hear(said.client, words); }, words_in(said.line));
    ring();
  }

  void on(const Ended& ended) {
    if (client(ended.client) == nullptr) return;
    forget(ended.client, true);
    ring();
  }

  void on(const LimitsKnown& known) {
    Client* one = client(known.client);
    if (one == nullptr || !one->place) return;
    one->place->limits = LimitsOf{known.asker};
    limit(known.client);
    ring();
  }

  void on(const News&) {
    const bool is_to_show = state_.board && !std::exchange(state_.board->has_news, true);
    if (is_to_show || somebody_waits()) ring();
  }

  /// In the middle of a round no answer comes any more: the shell has lost it.
  void on(const Woke&) {
    if (is(Rests{})) return begin_round();
    on(NotAnswered{"its answer was lost"});
  }

  void on(const IsPresent& present) {
    if (!is(Appears{})) return;
    state_.heartbeat = Present{present.renewal};
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
      if (changed.made) is_settled(*settles);
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
    // The store may still make the change later, when the connection has ended and its entries were
    // removed.
    if (is(Registers{}) || is(Settles{}))
      state_.sweep_at = std::max(state_.sweep_at.value_or(Moment{}), now_ + kLateChange);
    const std::string why = fmt::format("{}: {}", given_.url, silent.why);
    if (state_.fault.empty())
      act(Log{fmt::format("the store at {} does not answer, and all keep their places: {}", given_.url,
                          silent.why)});
    state_.fault = why;
    for (auto& [id, each] : state_.clients)
      if (each.place) tell_silence(id, *each.place);
    act(AskAnother{});
    report();
    rest(now_ + kAfterFault);
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
    const auto* present = std::get_if<Present>(&state_.heartbeat);
    if (present != nullptr && now_ < present->renewal) return take_away();
    act(Appear{.anew = present == nullptr});
  }

  /// The places of those who have gone.
  void take_away() {
    if (state_.removals.empty()) return look();
    const std::string& id = *state_.removals.begin();
    state_.round = Removes{id};
    change(remove_all(id));
  }

  void look() {
    const bool has_to_sweep = state_.sweep_at && now_ >= *state_.sweep_at;
    if (somebody_looks() || has_to_sweep || state_.board || somebody_waits()) {
      state_.needed = now_;
    } else {
      if (now_ > state_.needed + kKeptReading) act(Forget{});
      return end_round();
    }
    for (const ClientId each : all()) limit(each);
    // The fair number of a new request depends on the numbers of the others.
    if (!given_.is_unread || numbers()) return read();
    state_.round = Registers{all()};
    register_next();
  }

  void register_next() {
    auto& rest = std::get<Registers>(state_.round).rest;
    while (!rest.empty()) {
      const Client* next = client(rest.front());
      rest.pop_front();
      if (next != nullptr && is_ready(*next) && std::holds_alternative<Waits>(next->place->stage))
        return change(put_ticket(*next->place, 0));
    }
    read();
  }

  void read() {
    state_.round = Reads{};
    act(Read{.in_any_case = somebody_looks()});
  }

  void use_copy() {
    // If the store was wiped or set back, it has lost the heartbeat of this agent too.
    if (!store().alive().contains(state_.settings.name)) state_.heartbeat = Absent{};
    sweep();
    if (!state_.removals.empty()) state_.again = true;
    state_.round = Settles{.rest = all()};
    settle_next();
  }

  void settle_next() {
    while (!std::get<Settles>(state_.round).rest.empty()) {
      auto& settles = std::get<Settles>(state_.round);
      settles.now = settles.rest.front();
      settles.what = Settles::Puts{};
      settles.rest.pop_front();
      Client* one = client(settles.now);
      if (one == nullptr || !is_ready(*one)) continue;
      state_.patience.pass_over(*one->place, now_);
      if (auto wanted = settle(settles.now, *one, *one->place)) return change(*std::move(wanted));
    }
    tell_all();
    end_round();
  }

  void end_round() {
    if (!std::exchange(state_.fault, "").empty())
      act(Log{fmt::format("the store at {} answers again", given_.url)});
    for (auto& [id, each] : state_.clients)
      if (each.place && std::exchange(each.place->told.is_silent, false)) tell(id, "heard");
    report();
    if (state_.again) return begin_round();
    Moment until = now_ + (somebody_waits() ? kRound : kIdleRound);
    const auto at_latest = [&](std::optional<Moment> at) { until = std::min(until, at.value_or(until)); };
    const auto* present = std::get_if<Present>(&state_.heartbeat);
    at_latest(present == nullptr ? now_ + kAfterFault : present->renewal);
    at_latest(state_.sweep_at);
    if (state_.board) at_latest(next_show());
    for (const auto& [id, each] : state_.clients) {
      if (!each.place) continue;
      at_latest(state_.patience.next(*each.place));
      at_latest(names_late(*each.place));
    }
    rest(std::max(until, now_));
  }

  void rest(Moment until) {
    state_.round = Rests{};
    act(Rest{until});
  }

  /// Tickets that a killed agent left here, or that were written late.
  void sweep() {
    if (now_ < state_.began + kComingBack) return;
    if (state_.sweep_at && now_ >= *state_.sweep_at) state_.sweep_at.reset();
    const std::string& home = state_.settings.name;
    std::set<std::string, std::less<>> here;
    for (const auto& [id, each] : state_.clients)
      if (each.place) here.insert(each.place->kept.id);
    for (const std::string& id : store().queue().of_home(home))
      if (!here.contains(id)) state_.removals.insert(id);
    for (const auto& [id, start] : store().starts())
      if (home_of(id) == home && !here.contains(id)) state_.removals.insert(id);
  }

  // --- one request

  /// The change that puts there what it wants. nullopt: all is as it should be.
  std::optional<LabChange> settle(ClientId id, Client& one, QueueEntry& place) {
    const auto found = store().queue().find(place.kept.id);
    const LabStart* start = store().start_of(place.kept.id);
    give_fair_number(place.kept, found, start);
    if (found && found->uid != one.uid) {
      dismiss(id, "another user has a place of this name", false);
      return std::nullopt;
    }
    if (!found && start != nullptr && place.has_lost(*start, one.pid)) {
      std::get<Settles>(state_.round).what = Settles::TakesBack{start->host};
      return take_back(place, store());
    }
    const std::uint64_t order = found ? found->order : 0;
    if (const auto* asks = std::get_if<Asks>(&place.stage)) return begin(id, one, asks->host, order);
    // The command runs. That stays true if the store was wiped or set back.
    if (const auto* runs = std::get_if<Runs>(&place.stage)) {
      if (start == nullptr)
        return put_start_again(place, place.start_on(runs->host, one.pid), order,
                               has_lab_limit(state_.settings.limits));
      if (runs->asks_again) answer_start(id, one, runs->host, *start);
      return std::nullopt;
    }
    if (!found) return start == nullptr ? std::optional(put_ticket(place, 0)) : std::nullopt;
    const LabTicket wanted = place.ticket();
    const bool is_as_wanted = found->hosts == wanted.hosts && found->joined == wanted.joined &&
                              found->most == wanted.most && found->origin == wanted.origin;
    return is_as_wanted ? std::nullopt : std::optional(put_ticket(place, order));
  }

  /// A request gets its fair number once. It keeps the number of its ticket or its start, also if
  /// the store was wiped.
  void give_fair_number(LabTicket& wanted, const std::optional<LabTicket>& found,
                        const LabStart* start) const {
    if (found)
      wanted.fair_number = found->fair_number;
    else if (start != nullptr)
      wanted.fair_number = start->fair_number;
    else if (!wanted.fair_number && numbers())
      wanted.fair_number = next_fair_number(wanted.uid, store().fair_numbers());
  }

  /// The one start. `order`: of its ticket; 0: it has none.
  std::optional<LabChange> begin(ClientId id, Client& one, const std::string& host, std::uint64_t order) {
    QueueEntry& place = *one.place;
    if (order == 0) {
      // It has no place: it gets one first, or it was started already.
      const LabStart* start = store().start_of(place.kept.id);
      if (start == nullptr) return put_ticket(place, 0);
      answer_start(id, one, host, *start);
      return std::nullopt;
    }
    if (place.is_closing(host)) {
      place.stage = Waits{};  // it is about to let this host go
      return std::nullopt;
    }
    const auto why = place.kept.most ? why_over(place, store().gpus_by_user(), 0) : std::nullopt;
    if (why) {
      place.stage = Waits{};
      hold_back(id, place, *why);
      return std::nullopt;
    }
    std::get<Settles>(state_.round).what = Settles::Starts{host};
    return put_start(place, place.start_on(host, one.pid), order, store());
  }

  /// A start that was answered to nobody is answered again, to the same process for the same host.
  void answer_start(ClientId id, Client& one, const std::string& host, const LabStart& start) {
    if (start.host == host && start.pid == one.pid) return say_yes(id, *one.place, host);
    // Another's start that is there stays. Its own ends with the connection, as always.
    dismiss(id, "this request was started already", start.pid == one.pid);
  }

  void say_yes(ClientId id, QueueEntry& place, const std::string& host) {
    tell(id, "yes " + host);
    place.stage = Runs{host};
  }

  void is_settled(const Settles& settles) {
    Client* one = client(settles.now);
    if (one == nullptr || !one->place) return;
    QueueEntry& place = *one->place;
    if (const auto* starts = std::get_if<Settles::Starts>(&settles.what)) {
      // If the process has let the host go while the store was asked, the next round takes the
      // start back.
      const auto* asks = std::get_if<Asks>(&place.stage);
      if (asks != nullptr && asks->host == starts->host) say_yes(settles.now, place, starts->host);
    } else if (const auto* back = std::get_if<Settles::TakesBack>(&settles.what)) {
      if (NamedHost* host = place.host(back->host)) host->is_let_go = std::holds_alternative<Left>(host->how);
    }
  }

  // --- the limits of users over the lab

  /// Says in the ticket what its user may have at this hour.
  void limit(ClientId id) {
    Client* one = client(id);
    if (one == nullptr || !one->place || std::holds_alternative<Runs>(one->place->stage)) return;
    const auto limits = limits_now(*one->place);
    if (!limits) return;
    if (const auto why = never_in_lab(*limits, one->place->kept.gpus)) return dismiss(id, *why, true);
    const auto& most = limits->now.lab_gpus;
    one->place->kept.most = most ? std::optional(static_cast<unsigned>(most->most)) : std::nullopt;
  }

  std::optional<UserLimits> limits_now(const QueueEntry& place) const {
    const auto* of = std::get_if<LimitsOf>(&place.limits);
    if (of == nullptr) return std::nullopt;
    return limits_of(state_.settings.limits, of->asker, given_.hour);
  }

  /// Why the user may not start this one now. `taken`: what the user has of the lab, and what the
  /// user's earlier requests ask for.
  std::optional<std::string> why_over(const QueueEntry& place, const GpusByUser& has,
                                      std::uint64_t taken) const {
    const auto limits = limits_now(place);
    if (!limits) return std::nullopt;
    const auto found = has.in_all.find(place.kept.uid);
    const std::uint64_t held = found == has.in_all.end() ? 0 : found->second;
    return over_lab_limit(*limits, place.kept.gpus, held, taken - std::min(taken, held));
  }

  /// Whether it is known which limits apply. A request that runs needs none.
  static bool is_ready(const Client& one) {
    return one.place && (!std::holds_alternative<LimitsAsked>(one.place->limits) ||
                         std::holds_alternative<Runs>(one.place->stage));
  }

  /// The request keeps its place and lets its hosts go, so that no host holds GPUs for it.
  void hold_back(ClientId id, QueueEntry& place, const std::string& why) {
    for (NamedHost& each : place.hosts) {
      auto* opened = std::get_if<Opened>(&each.how);
      if (opened == nullptr || opened->closing) continue;
      opened->closing = now_;
      tell(id, "close " + each.name);
    }
    tell_limit(id, place, why);
  }

  void tell_limit(ClientId id, QueueEntry& place, const std::string& why) {
    if (std::exchange(place.told.limit, why) != why) tell(id, "limit " + printable(why));
  }

  /// When it is told that the name service is late. nullopt: it is not, or that was told.
  static std::optional<Moment> names_late(const QueueEntry& place) {
    const auto* asked = std::get_if<LimitsAsked>(&place.limits);
    return asked != nullptr && place.told.limit.empty() ? std::optional(asked->since + kPatienceForNames)
                                                        : std::nullopt;
  }

  // --- what is told

  void tell_all() {
    const auto absent = absent_homes();
    const GpusByUser has = who_has_what();
    LabOpenings openings(store().queue(), absent, has);
    for (auto& [id, each] : state_.clients) {
      if (!each.place) continue;
      QueueEntry& place = *each.place;
      const auto ticket = store().queue().find(place.kept.id);
      // The agent knows its own ticket at once. The watch may still have to report earlier tickets.
      if (!ticket || ticket->order > store().revision()) continue;
      tell_openings(id, place, openings, has);
    }
  }

  void tell_openings(ClientId id, QueueEntry& place, LabOpenings& openings, const GpusByUser& has) {
    for (NamedHost& each : place.hosts)
      if (auto* opened = std::get_if<Opened>(&each.how);
          opened != nullptr && opened->closing && now_ - *opened->closing > kClosing)
        opened->closing.reset();
    if (const auto taken = openings.taken_of_limit(place.kept.id)) {
      if (const auto why = why_over(place, has, *taken)) hold_back(id, place, *why);
    } else {
      tell_limit(id, place, "");
    }
    for (const std::string& name : openings.hosts_to_join(place.kept.id)) {
      NamedHost* host = place.host(name);
      if (host == nullptr || !std::holds_alternative<Shut>(host->how)) continue;
      host->how = Opened{.since = now_};
      tell(id, "open " + name);
      tell(id, "answer " + name);
    }
    // The place is sent last. So a request that does not wait knows that no other host is open to
    // it now.
    const std::size_t position = openings.position(place.kept.id);
    if (std::exchange(place.told.position, position) != position) tell(id, fmt::format("place {}", position));
  }

  void tell_silence(ClientId id, QueueEntry& place) {
    if (!std::exchange(place.told.is_silent, true)) tell(id, "silent " + printable(state_.fault));
  }

  /// To people who look, and to requests whose limits are not known.
  void report() {
    // Before that, a part of it has been read so far.
    const bool has_queue = !state_.fault.empty() || store().is_whole();
    for (auto& [id, each] : state_.clients) {
      if (each.place && now_ >= names_late(*each.place).value_or(Moment::max()))
        tell_limit(id, *each.place,
                   "the name service of this machine has not said yet which limits apply to you");
      if (std::exchange(each.wants_status, false))
        tell_lines(id, status_answer(given_.url, state_.settings.name, state_.fault, store()));
      if (!each.wants_queue || !has_queue) continue;
      const std::size_t from = *std::exchange(each.wants_queue, std::nullopt);
      if (state_.fault.empty())
        tell_lines(id, queue_answer(order_now(), from));
      else
        tell(id, "silent " + printable(state_.fault));
      tell(id, "end");
    }
    // While the store does not answer, all keep their places.
    if (state_.board && state_.fault.empty() && has_queue && now_ >= next_show()) show(*state_.board);
  }

  void show(Board& board) {
    board.shown_at = now_;
    board.has_news = false;
    std::vector<LabStanding> queue = order_now().standing;
    if (queue.size() > kMostStanding) queue.resize(kMostStanding);
    for (LabStanding& each : queue) each.origin = shown_origin(each);
    if (std::exchange(board.shown, queue) != queue) act(Show{std::move(queue)});
  }

  Moment next_show() const {
    const Board& board = *state_.board;
    if (!board.shown_at) return now_;
    return *board.shown_at + (board.has_news ? kBetweenShows : kWithoutNews);
  }

  LabOrder order_now() {
    const auto absent = absent_homes();
    return LabOpenings(store().queue(), absent, who_has_what()).order();
  }

  /// Empty if the order does not depend on it.
  GpusByUser who_has_what() const {
    return store().queue().asks_who_has_what() ? store().gpus_by_user() : GpusByUser{};
  }

  std::set<std::string, std::less<>> absent_homes() {
    std::set<std::string, std::less<>> absent;
    for (const auto& [home, tickets] : store().queue().homes()) {
      if (store().alive().contains(home))
        state_.silent_since.erase(home);
      else if (now_ - state_.silent_since.try_emplace(home, now_).first->second > kSilence)
        absent.insert(home);
    }
    return absent;
  }

  // --- what clients say

  void hear(ClientId id, const WantsStatus&) { client(id)->wants_status = true; }
  void hear(ClientId id, const WantsQueue& wants) { client(id)->wants_queue = wants.from; }
  void hear(ClientId id, const Nonsense& nonsense) { dismiss(id, nonsense.why, true); }

  void hear(ClientId id, const WantsEntry& wants) {
    Client& one = *client(id);
    if (one.place) return dismiss(id, kUnknownWord, true);
    const std::string name = id_of(state_.settings.name, wants.mark);
    const auto has_it = [&](const auto& each) {
      return each.second.place && each.second.place->kept.id == name;
    };
    if (std::ranges::any_of(state_.clients, has_it))
      return dismiss(id, "this request has its place on another connection", true);
    QueueEntry place{.kept = {.id = name,
                              .home = state_.settings.name,
                              .uid = one.uid,
                              .lane = wants.lane,
                              .gpus = wants.gpus,
                              .origin = origin_of(state_.settings.machine, one.pid),
                              .hosts = {},
                              .joined = {}}};
    for (const std::string& host : wants.hosts) place.hosts.push_back({host});
    if (!wants.runs_on.empty()) place.stage = Runs{wants.runs_on};
    if (has_lab_limit(state_.settings.limits)) {
      place.limits = LimitsAsked{now_};
      act(AskLimits{id, one.uid});
    }
    one.place = std::move(place);
    state_.removals.erase(name);
    if (!state_.fault.empty()) tell_silence(id, *one.place);
  }

  void hear(ClientId id, const OfHost& said) {
    Client& one = *client(id);
    NamedHost* host = one.place ? one.place->host(said.host) : nullptr;
    if (host == nullptr) return dismiss(id, kUnknownWord, true);
    if (std::holds_alternative<Left>(host->how)) {
      // Its answers to what it was told of the host may come after its word that it has left.
      if (said.word == OfHost::Word::start) dismiss(id, kUnknownWord, true);
      return;
    }
    auto* opened = std::get_if<Opened>(&host->how);
    switch (said.word) {
      case OfHost::Word::here:
        if (opened != nullptr && opened->reach != Opened::Reach::stands)
          opened->reach = Opened::Reach::answers;
        return;
      case OfHost::Word::joined:
        // It may have joined while an earlier agent was here.
        if (opened == nullptr) opened = &host->how.emplace<Opened>(Opened{.since = now_});
        opened->reach = Opened::Reach::stands;
        return;
      case OfHost::Word::closed:
        return one.place->lets_go(*host, Shut{});
      case OfHost::Word::left:
        return one.place->lets_go(*host, Left{});
      case OfHost::Word::start:
        return ask_to_start(id, *one.place, said.host);
    }
  }

  void ask_to_start(ClientId id, QueueEntry& place, const std::string& host) {
    auto* runs = std::get_if<Runs>(&place.stage);
    if (runs == nullptr) return (void)(place.stage = Asks{host});
    if (runs->host != host) return dismiss(id, "this request was started already", true);
    runs->asks_again = true;
  }

  // --- clients

  /// nullptr: it has ended.
  Client* client(ClientId id) {
    const auto found = state_.clients.find(id);
    return found == state_.clients.end() ? nullptr : &found->second;
  }

  std::deque<ClientId> all() const {
    std::deque<ClientId> ids;
    for (const auto& [id, each] : state_.clients) ids.push_back(id);
    return ids;
  }

  bool somebody_waits() const {
    return std::ranges::any_of(state_.clients,
                               [](const auto& each) { return each.second.place.has_value(); });
  }
  bool somebody_looks() const {
    return std::ranges::any_of(state_.clients, [](const auto& each) {
      return each.second.wants_status || each.second.wants_queue.has_value();
    });
  }

  /// `with_place`: what the store has of it is removed.
  void dismiss(ClientId id, std::string_view why, bool with_place) {
    tell(id, fmt::format("no {}", why));
    act(Dismiss{id});
    forget(id, with_place);
  }

  /// Its place goes at once, unless that is another user's.
  void forget(ClientId id, bool with_place) {
    const Client& one = *client(id);
    if (with_place && one.place) {
      const auto found = store().queue().find(one.place->kept.id);
      if (!found || found->uid == one.uid) state_.removals.insert(one.place->kept.id);
    }
    state_.clients.erase(id);
    state_.again = true;
  }

  void tell(ClientId id, std::string line) { act(Tell{id, std::move(line)}); }
  void tell_lines(ClientId id, std::vector<std::string> lines) {
    for (std::string& each : lines) tell(id, std::move(each));
  }

  // --- the step

  template <class Stage>
  bool is(const Stage&) const {
    return std::holds_alternative<Stage>(state_.round);
  }
  bool numbers() const { return traits_of(state_.settings.order).numbers; }
  const lab_queue::LabCopy& store() const { return given_.store; }
  void change(LabChange change) { act(Change{std::move(change)}); }
  void act(Action action) { actions_.push_back(std::move(action)); }

  State& state_;
  const Given& given_;
  Moment now_;
  std::vector<Action> actions_{};
};

}  // namespace

State begin(Settings settings, Moment now) {
  State state{.settings = std::move(settings)};
  if (state.settings.shows) state.board = Board{};
  state.began = now;
  state.sweep_at = now + kComingBack;
  return state;
}

std::vector<Action> next(State& state, const Given& given, const What& what) {
  return AgentRules(state, given).step(what);
}

}  // namespace berth::store_agent
