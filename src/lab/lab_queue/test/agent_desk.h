#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/lab_queue/model/agent_deeds.h"
#include "berth/lab_queue/model/lab_agent_step.h"
#include "berth/lab_queue/model/lab_copy.h"
#include "berth/machines/host.h"

// An agent, its requests and its etcd, without a process.
namespace berth::lab_agent_test {

using namespace lab_queue::lab_agent;
using namespace std::chrono_literals;
using lab_queue::key_of;
using lab_queue::kLabAlive;
using lab_queue::kLabStarts;
using lab_queue::kLabTickets;
using lab_queue::kLabUsers;
using lab_queue::LabChange;
using lab_queue::LabCondition;
using lab_queue::LabCopy;
using lab_queue::name_in;
using lab_queue::StoredRange;
using lab_queue::StoredValue;
using Words = std::vector<std::string>;

inline constexpr std::uint32_t kAlice = 1000;
inline constexpr std::uint32_t kBob = 1001;

/// What etcd has, and how it makes changes.
class Etcd {
 public:
  bool make(const LabChange& change) {
    for (const LabCondition& each : change.conditions) {
      const auto found = keys_.find(each.key);
      const std::uint64_t there =
          found == keys_.end()
              ? 0
              : (each.of == LabCondition::Of::created ? found->second.created : found->second.changed);
      if (there != each.revision) return false;
    }
    ++revision;
    if (before) before(change);
    for (const std::string& key : change.removed) keys_.erase(key);
    for (const LabChange::Put& each : change.puts) {
      const auto [found, is_new] = keys_.try_emplace(each.key);
      found->second = {each.key, each.value, is_new ? revision : found->second.created, revision};
      if (!each.lease.empty()) leased.insert(each.key);
    }
    return true;
  }
  void put(std::string_view folder, const std::string& name, const lab_queue::LabValue& value) {
    LabChange change;
    change.puts.push_back({key_of(folder, name), value});
    make(change);
  }
  void remove(std::string_view folder, const std::string& name) {
    LabChange change;
    change.removed = {key_of(folder, name)};
    make(change);
  }
  /// Whoever has a copy sees that it is another store.
  void wipe() {
    keys_.clear();
    ++revision;
  }
  StoredRange all() const {
    StoredRange range;
    for (const auto& [key, value] : keys_) range.values.push_back(value);
    range.revision = revision;
    range.count = range.values.size();
    return range;
  }

  LabCopy as_known() const {
    LabCopy copy;
    copy.read(all());
    return copy;
  }
  std::optional<LabTicket> ticket(const std::string& id) const { return as_known().queue().find(id); }
  /// "": it has none.
  std::string start(const std::string& id) const {
    const LabCopy known = as_known();
    const LabStart* start = known.start_of(id);
    return start == nullptr ? "" : start->host;
  }
  std::size_t tickets() const { return as_known().queue().size(); }
  std::size_t starts() const { return as_known().starts().size(); }

  std::uint64_t revision = 1;
  std::set<std::string> leased{};
  std::map<std::string, StoredValue> keys_{};
  std::function<void(const LabChange&)> before{};  ///< what is checked of a change that is made
};

/// How etcd answers.
enum class Way {
  answers,
  is_silent,      ///< and makes nothing
  loses_answers,  ///< and makes what it is asked
  holds,          ///< makes no change and says nothing until it goes on
};

/// A machine with an agent, and the requests on it. `says` is what they are told: "1: open gpu1".
class Desk {
 public:
  explicit Desk(
      Etcd& etcd, const std::function<void(Settings&)>& is_so = [](Settings&) {})
      : etcd_(etcd), is_so_(is_so) {
    restart();
  }

  /// The agent is killed and started. Its clients have lost it.
  void restart() {
    Settings settings{.name = "desk1", .machine = "machine1"};
    is_so_(settings);
    name = settings.name;
    state = begin(settings, now);
    copy = LabCopy();
    question.reset();
    is_late_of_killed = late.has_value();
    happen(Woke{});
    settle();
  }

  ClientId comes(std::uint32_t uid = kAlice) {
    const ClientId id = ++last_;
    is(Came{id, pid_of(id), uid});
    return id;
  }
  /// A process that comes back.
  ClientId comes_as(ClientId earlier, std::uint32_t uid = kAlice) {
    const ClientId id = ++last_;
    pids_[id] = pid_of(earlier);
    is(Came{id, pid_of(id), uid});
    return id;
  }
  /// With an entry for these hosts.
  ClientId waits(const std::string& hosts, std::uint32_t uid = kAlice) {
    const ClientId id = comes(uid);
    says(id, fmt::format("wait {} 1 {} 1", mark_of(id), hosts));
    return id;
  }
  /// It stands in the queue of each of these hosts.
  ClientId stands(const std::string& hosts, std::uint32_t uid = kAlice) {
    const ClientId id = waits(hosts, uid);
    for (const NamedHost& each : std::vector(state.clients.at(id).entry->hosts))
      says(id, "joined " + each.name);
    return id;
  }
  static std::string mark_of(ClientId id) { return fmt::format("{:032x}", id); }
  std::string id_of(ClientId id) const { return berth::id_of(name, mark_of(id)); }
  std::int64_t pid_of(ClientId id) {
    return pids_.try_emplace(id, 100 + static_cast<std::int64_t>(id)).first->second;
  }

  Words says(ClientId id, const std::string& line) { return is(Said{id, line}); }
  Words ends(ClientId id) { return is(Ended{id}); }
  Words is(const Event& what) {
    did.clear();
    happen(what);
    settle();
    return did;
  }
  Words passes(SteadyTime time) {
    did.clear();
    const SteadyTime end = now + time;
    settle();
    while (!question && rests_until < end) {
      now = std::max(now, rests_until);
      happen(Woke{});
      settle();
    }
    now = end;
    settle();
    return did;
  }
  /// What was held goes on.
  Words goes_on() {
    did.clear();
    way = Way::answers;
    settle();
    return did;
  }
  /// A change that etcd has not answered is made after all.
  void makes_late() {
    const auto change = std::exchange(late, std::nullopt);
    if (change && now < late_until_) etcd_.make(*change);
  }
  /// Nothing comes from the watch, and etcd's answers do not tell.
  bool is_deaf = false;

  Way way = Way::answers;
  State state{};
  SteadyTime now = 1000s;
  std::string name{};
  Words did{};
  std::vector<LabStanding> shown{};
  LabCopy copy{};
  SteadyTime rests_until{};
  std::optional<Action> question{};
  std::optional<LabChange> late{};
  bool is_late_of_killed = false;  ///< an agent before this one has asked for it
  std::size_t reads = 0;
  bool has_written_unread = false;  ///< a change with conditions, while nothing was known
  WeekMinute hour{};
  bool knows_names = true;
  std::function<void(const Action&)> check = [](const Action&) {};

 private:
  void happen(const Event& what) {
    // The watch tells this agent's own changes, too.
    if (copy.is_whole() && !is_deaf && std::exchange(told_, etcd_.revision) != etcd_.revision) {
      copy.read(etcd_.all());
      has_news_ = true;
    }
    const StepInput given{
        .now = now, .hour = hour, .store = copy, .is_unread = !copy.is_whole(), .url = "http://etcd"};
    std::vector<Action> actions = next(state, given, what);
    for (const Action& each : actions) {
      check(each);
      std::visit([this](const auto& action) { perform(action); }, each);
    }
    for (const AskLimits& each : std::exchange(names_asked_, {}))
      if (knows_names) happen(LimitsKnown{each.client, {each.uid, each.uid == kBob ? "bob" : "alice", {}}});
  }

  void settle() {
    for (int round = 0; round < 1000 && (question || has_news_); ++round) {
      if (way == Way::holds && question && std::holds_alternative<Change>(*question)) return;
      if (question) {
        const Action asked = *std::exchange(question, std::nullopt);
        happen(std::visit([this](const auto& each) { return answer(each); }, asked));
      }
      if (!question && std::exchange(has_news_, false)) happen(News{});
    }
    REQUIRE(!question);
  }

  Event answer(const Appear&) {
    if (way == Way::is_silent) return NotAnswered{"no answer"};
    LabChange change;
    change.puts.push_back({key_of(kLabAlive, name), "1.0", "lease"});
    etcd_.make(change);
    copy.made_here(change, etcd_.revision);
    if (way == Way::loses_answers) return NotAnswered{"no answer"};
    return IsPresent{now + 10s};
  }
  Event answer(const Change& asked) {
    const LabChange& change = asked.change;
    has_written_unread = has_written_unread || (!copy.is_whole() && !change.conditions.empty());
    if (way == Way::is_silent) {
      if (!change.conditions.empty()) {
        late = change;
        is_late_of_killed = false;
      }
      late_until_ = now + 10s;
      return NotAnswered{"no answer"};
    }
    const bool made = etcd_.make(change);
    is_torn_ = is_torn_ || !made;
    if (way == Way::loses_answers) {
      is_torn_ = true;
      return NotAnswered{"no answer"};
    }
    if (made) copy.made_here(change, etcd_.revision);
    return Changed{made};
  }
  Event answer(const Read& asked) {
    if (copy.is_whole() && !is_torn_ && !asked.in_any_case) return IsRead{true};
    if (way != Way::answers) return NotAnswered{"no answer"};
    if (!copy.is_whole() || is_torn_) ++reads;
    is_torn_ = false;
    told_ = etcd_.revision;
    copy.read(etcd_.all());
    return IsRead{true};
  }
  template <class Other>
  Event answer(const Other&) {
    FAIL("it asks nothing");
    return Woke{};
  }

  void perform(const Tell& what) { did.push_back(fmt::format("{}: {}", what.client, what.line)); }
  void perform(const Dismiss& what) { did.push_back(fmt::format("ends {}", what.client)); }
  void perform(const AskLimits& what) { names_asked_.push_back(what); }
  void perform(const Appear& what) { ask(what); }
  void perform(const Change& what) { ask(what); }
  void perform(const Read& what) { ask(what); }
  void perform(const Forget&) { copy.forget(); }
  void perform(const AskAnother&) { did.emplace_back("asks another"); }
  void perform(const Log& what) { did.push_back("log: " + what.line); }
  void perform(const Show& what) { shown = what.standing; }
  void perform(const Rest& what) { rests_until = what.until; }

  void ask(Action action) {
    REQUIRE(!question);
    question = std::move(action);
  }

  Etcd& etcd_;
  std::function<void(Settings&)> is_so_;
  ClientId last_ = 0;
  std::map<ClientId, std::int64_t> pids_{};
  std::vector<AskLimits> names_asked_{};
  SteadyTime late_until_{};
  std::uint64_t told_ = 0;  ///< the revision up to which the watch has told all, or all was read
  bool is_torn_ = false;
  bool has_news_ = false;
};

inline void at_desk2(Settings& settings) {
  settings.name = "desk2";
}
inline void fairly(Settings& settings) {
  settings.order = QueueOrder::fair;
}
inline void with_one_gpu_each(Settings& settings) {
  settings.limits.always.each.lab_gpus = 1;
}

inline bool is_told(const Words& did, const std::string& line) {
  return std::ranges::find(did, line) != did.end();
}
inline LabTicket ticket_of(const std::string& home, const std::string& host, std::uint32_t uid = kBob) {
  return {.id = {}, .home = home, .uid = uid, .lane = 1, .hosts = {host}, .joined = {}};
}
inline LabStart start_of(const std::string& host, std::int64_t pid, std::uint32_t uid = kBob) {
  return {.host = host, .pid = pid, .uid = uid, .gpus = 1};
}

}  // namespace berth::lab_agent_test
