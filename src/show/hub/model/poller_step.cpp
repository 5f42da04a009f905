#include "berth/hub/model/poller_step.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace berth::hub {
namespace {

constexpr std::size_t kMostOfHosts = 64U << 20U;
/// The values, what they are written as, and that compressed: what a process or a waiter takes
/// beside its text.
constexpr std::size_t kForEachByte = 4;

}  // namespace

std::size_t most_of_answer(std::size_t agents) {
  constexpr std::size_t kFew = 32;
  return agents <= kFew ? 1U << 20U : 256U << 10U;
}

HostShares::HostShares(std::size_t hosts) : share_(kMostOfHosts / 2 / std::max<std::size_t>(hosts, 1)) {}

std::size_t HostShares::beyond_share(std::size_t entry_bytes) const {
  const std::size_t taken = entry_bytes * kForEachByte;
  return taken > share_ ? taken - share_ : 0;
}

bool HostShares::has_room(std::size_t entry_bytes, std::size_t others_beyond) const {
  const std::size_t beyond = beyond_share(entry_bytes);
  return beyond == 0 || others_beyond + beyond <= kMostOfHosts / 2;
}

std::chrono::nanoseconds pause_before_second(std::chrono::nanoseconds every, std::size_t index,
                                             std::size_t count) {
  return every * (static_cast<std::int64_t>(index) + 1) / static_cast<std::int64_t>(count);
}

std::chrono::milliseconds pause_after(std::chrono::milliseconds every, unsigned failures, double chance) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::seconds(30);
  constexpr unsigned kMostDoublings = 10;
  if (failures < 2) return every;
  const auto doubled = every * (1 << std::min(failures - 1, kMostDoublings));
  const auto pause = std::max(every, std::min(doubled, kLongest));
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(static_cast<double>(pause.count()) * (0.75 + 0.5 * chance)));
}

}  // namespace berth::hub

namespace berth::hub::poller {
namespace {

using namespace std::chrono_literals;

/// News of many hosts within this time are published at once.
constexpr SteadyTime kGathering = 200ms;
/// A page that could not be made is made again then. If that is for want of memory, trying again at
/// once is no help.
constexpr SteadyTime kPauseAfterFailure = 5s;
constexpr const char* kNoRoomBesideOthers =
    "what it tells is not shown: with that of all others it would take more than 64 MiB";
constexpr const char* kNoMemory = "what it answers cannot be dealt with here for want of memory";

PolledHost host_of(Kind kind) {
  switch (kind) {
    case Kind::refused:
      return HostRefused{};
    case Kind::own:
      return Own{};
    default:
      return Far{};
  }
}

// nullptr: nothing ever comes of it.
template <class AnyHost>
auto row_of(AnyHost& host) -> decltype(&std::get<Own>(host).row) {
  if (auto* own = std::get_if<Own>(&host)) return &own->row;
  auto* far = std::get_if<Far>(&host);
  return far != nullptr ? &far->row : nullptr;
}

unsigned failures_of(const Row& row) {
  const auto* down = std::get_if<Down>(&row.standing);
  return down != nullptr ? down->failures : 0;
}

std::string tag_of(const Row& row) {
  const auto* up = std::get_if<Up>(&row.standing);
  return up != nullptr ? up->tag : "";
}

/// A rule for each event.
class PollerRules {
 public:
  PollerRules(State& state, const TimedEvent& event)
      : state_(state), now_(event.now), chance_(event.chance) {}

  std::vector<Action> step(const Event& what) && {
    std::visit([this](const auto& each) { on(each); }, what);
    return std::move(actions_);
  }

 private:
  // --- who is asked, and when

  // A host that is named again keeps its row, and its turn: a question that is under way goes on.
  void on(const Applied& applied) {
    state_.every = applied.every;
    std::set<HostId> named;
    for (const WantedHost& each : applied.hosts) named.insert(each.id);
    std::erase_if(state_.hosts, [&](const auto& each) {
      if (named.contains(each.first)) return false;
      act(Drop{each.first});
      return true;
    });
    std::vector<HostId> fresh;
    for (const WantedHost& each : applied.hosts) {
      const auto [place, is_fresh] = state_.hosts.try_emplace(each.id, host_of(each.kind));
      if (is_fresh) {
        fresh.push_back(each.id);
        act(Post{each.id, ++state_.number});
      } else if (auto* far = std::get_if<Far>(&place->second)) {
        far->connection = ConnectionAge::fresh;
      }
    }
    for (std::size_t i = 0; i < fresh.size(); ++i) begin(fresh[i], i, fresh.size());
    publish_now();
  }

  void begin(HostId id, std::size_t index, std::size_t count) {
    PolledHost& host = state_.hosts.at(id);
    if (auto* far = std::get_if<Far>(&host)) {
      far->second = now_ + hub::pause_before_second(state_.every, index, count);
      ask(id, *far);
    } else if (auto* own = std::get_if<Own>(&host); own != nullptr && state_.own_has_published) {
      read(id, *own);
    }
  }

  void ask(HostId id, Far& far) {
    act(Ask{id, std::exchange(far.connection, ConnectionAge::kept), tag_of(far.row)});
    far.turn = Asking{now_};
  }

  void read(HostId id, Own& own) {
    act(ReadOwn{id});
    own.turn = InWork{};
  }

  void on(const Due& due) {
    auto* far = known<Far>(due.host);
    const auto* resting = far != nullptr ? std::get_if<Resting>(&far->turn) : nullptr;
    if (resting != nullptr && now_ >= resting->until) ask(due.host, *far);
  }

  void on(const OwnPublished&) {
    state_.own_has_published = true;
    for (auto& [id, host] : state_.hosts) {
      auto* own = std::get_if<Own>(&host);
      if (own == nullptr) continue;
      if (std::holds_alternative<Idle>(own->turn))
        read(id, *own);
      else
        own->turn = Overtaken{};
    }
  }

  // --- what has come of a host

  void on(const HostRead& told) {
    Row* row = awaited(told.host);
    if (row == nullptr) return;
    if (told.has_new_report && !has_room(told.host, told.entry_bytes))
      return act(Refuse{told.host, kNoRoomBesideOthers});
    const bool is_first = std::holds_alternative<Unheard>(row->standing);
    stand(*row, told);
    if (told.entry_bytes == 0) {
      act(Keep{told.host});
    } else {
      row->entry_bytes = told.entry_bytes;
      act(Post{told.host, ++state_.number});
      // A client that comes with the hub need not wait for what else may come.
      publish(is_first && all_were_heard() ? News::urgent : News::some);
    }
    rest(told.host);
  }

  void on(const Unreadable& answer) {
    if (awaited(answer.host) != nullptr) act(Refuse{answer.host, answer.why});
  }

  void on(const AnswerLost& lost) {
    Row* row = awaited(lost.host);
    if (row == nullptr) return;
    if (auto* far = known<Far>(lost.host)) far->connection = ConnectionAge::fresh;
    if (!std::exchange(row->lack_is_told, true)) act(Log{lost.host, kNoMemory});
    act(Refuse{lost.host, kNoMemory});
  }

  void stand(Row& row, const HostRead& told) {
    ++(told.is_up ? state_.answered : state_.failed);
    if (!told.is_up) {
      row.standing = Down{failures_of(row) + 1};
    } else {
      row.standing = Up{told.tag.value_or(tag_of(row))};
      row.lack_is_told = false;
    }
  }

  void rest(HostId id) {
    if (auto* far = known<Far>(id)) {
      const SteadyTime at = next_time(*far, std::get<Asking>(far->turn).since);
      far->turn = Resting{at};
      return act(AskAt{id, at});
    }
    auto* own = known<Own>(id);
    if (std::holds_alternative<Overtaken>(own->turn)) return read(id, *own);
    own->turn = Idle{};
  }

  SteadyTime next_time(Far& far, SteadyTime asked) {
    const unsigned failures = failures_of(far.row);
    if (failures == 0 && far.second && *far.second > now_) return *std::exchange(far.second, std::nullopt);
    return std::max(now_, asked + hub::pause_after(state_.every, failures, chance_));
  }

  bool has_room(HostId id, std::size_t entry_bytes) const {
    const hub::HostShares shares(state_.hosts.size());
    // Of nearly all: then the others need not be counted, each time one of a thousand has news.
    if (shares.beyond_share(entry_bytes) == 0) return true;
    std::size_t others_beyond = 0;
    for (const auto& [other, host] : state_.hosts) {
      const Row* row = row_of(host);
      if (other != id && row != nullptr) others_beyond += shares.beyond_share(row->entry_bytes);
    }
    return shares.has_room(entry_bytes, others_beyond);
  }

  bool all_were_heard() const {
    return std::ranges::none_of(state_.hosts, [](const auto& each) {
      const Row* row = row_of(each.second);
      return row != nullptr && std::holds_alternative<Unheard>(row->standing);
    });
  }

  template <class AnyHost>
  AnyHost* known(HostId id) {
    const auto place = state_.hosts.find(id);
    return place != state_.hosts.end() ? std::get_if<AnyHost>(&place->second) : nullptr;
  }

  // nullptr: the host has gone, or tells something that it was not asked.
  Row* awaited(HostId id) {
    if (auto* far = known<Far>(id)) return std::holds_alternative<Asking>(far->turn) ? &far->row : nullptr;
    auto* own = known<Own>(id);
    return own != nullptr && !std::holds_alternative<Idle>(own->turn) ? &own->row : nullptr;
  }

  // --- what is published, and when

  void on(const LabQueueChanged&) {
    state_.queue_number = ++state_.number;
    publish(News::some);
  }

  void publish(News news) {
    if (auto* making = std::get_if<Making>(&state_.publication)) {
      making->since = std::max(making->since, news);
    } else if (news == News::urgent) {
      make_page();
    } else if (std::holds_alternative<AllTold>(state_.publication)) {
      gather_until(now_ + kGathering);
    }
  }

  void gather_until(SteadyTime until) {
    act(PublishAt{until});
    state_.publication = Gathering{until};
  }

  void make_page() {
    act(MakePage{++state_.number});
    state_.publication = Making{state_.number};
  }

  // It has all that was gathered. A page that is being made is older then, and comes too late.
  void publish_now() {
    act(MakePageNow{++state_.number});
    state_.publication = AllTold{};
  }

  void on(const PageDue&) {
    const auto* gathering = std::get_if<Gathering>(&state_.publication);
    if (gathering != nullptr && now_ >= gathering->until) make_page();
  }

  void on(const Made& made) {
    if (made.number > state_.published) {
      act(Publish{made.number});
      state_.published = made.number;
    }
    const auto* making = std::get_if<Making>(&state_.publication);
    if (making == nullptr || making->number != made.number) return;
    const News since = making->since;
    state_.publication = AllTold{};
    if (since != News::none) publish(since);
  }

  // Clients lack what is new, unless a later page has it.
  void on(const NotMade& failed) {
    act(Log{std::nullopt, failed.why});
    const auto* making = std::get_if<Making>(&state_.publication);
    const bool has_later =
        failed.number < state_.published || (making != nullptr && making->number > failed.number);
    if (!has_later && !std::holds_alternative<Gathering>(state_.publication))
      gather_until(now_ + kPauseAfterFailure);
  }

  void act(Action action) { actions_.push_back(std::move(action)); }

  State& state_;
  SteadyTime now_;
  double chance_;
  std::vector<Action> actions_{};
};

}  // namespace

std::vector<Action> next(State& state, const TimedEvent& event) {
  return PollerRules(state, event).step(event.what);
}

}  // namespace berth::hub::poller
