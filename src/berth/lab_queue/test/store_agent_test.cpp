#include "berth/lab_queue/model/store_agent.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/lab_queue/lab_mirror.h"
#include "berth/lab_queue/lab_store.h"
#include "berth/lab_queue/model/lab_words.h"

namespace berth::store_agent_test {
namespace {

using namespace store_agent;
using store_agent::Moment;
using namespace std::chrono_literals;
using lab_queue::key_of;
using lab_queue::kLabAlive;
using lab_queue::kLabStarts;
using lab_queue::kLabTickets;
using lab_queue::kLabUsers;
using lab_queue::LabMirror;
using lab_queue::StoreChange;
using lab_queue::StoreCondition;
using lab_queue::StoredRange;
using lab_queue::StoredValue;
using Words = std::vector<std::string>;

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;

/// What etcd has, and how it makes changes.
class Etcd {
 public:
  bool make(const StoreChange& change) {
    for (const StoreCondition& each : change.conditions) {
      const auto found = keys_.find(each.key);
      const std::uint64_t there =
          found == keys_.end()
              ? 0
              : (each.of == StoreCondition::Of::created ? found->second.created : found->second.changed);
      if (there != each.revision) return false;
    }
    ++revision;
    if (before) before(change);
    for (const std::string& key : change.removed) keys_.erase(key);
    for (const StoreChange::Put& each : change.puts) {
      const auto [found, is_new] = keys_.try_emplace(each.key);
      found->second = {each.key, each.value, is_new ? revision : found->second.created, revision};
      if (!each.lease.empty()) leased.insert(each.key);
    }
    return true;
  }
  void put(std::string_view folder, const std::string& name, const std::string& value) {
    StoreChange change;
    change.puts.push_back({key_of(folder, name), value});
    make(change);
  }
  void remove(std::string_view folder, const std::string& name) {
    StoreChange change;
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

  LabMirror as_known() const {
    LabMirror mirror;
    mirror.read(all());
    return mirror;
  }
  std::optional<LabTicket> ticket(const std::string& id) const { return as_known().queue().find(id); }
  /// "": it has none.
  std::string start(const std::string& id) const {
    const LabMirror known = as_known();
    const LabStart* start = known.start_of(id);
    return start == nullptr ? "" : start->host;
  }
  std::size_t tickets() const { return as_known().queue().size(); }
  std::size_t starts() const { return as_known().starts().size(); }

  std::uint64_t revision = 1;
  std::set<std::string> leased{};
  std::map<std::string, StoredValue> keys_{};
  std::function<void(const StoreChange&)> before{};  ///< what is checked of a change that is made
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
    mirror = LabMirror();
    question.reset();
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
  /// With a place for these hosts.
  ClientId waits(const std::string& hosts, std::uint32_t uid = kAlice) {
    const ClientId id = comes(uid);
    says(id, fmt::format("wait {} 1 {} 1", mark_of(id), hosts));
    return id;
  }
  /// It stands in the queue of each of these hosts.
  ClientId stands(const std::string& hosts, std::uint32_t uid = kAlice) {
    const ClientId id = waits(hosts, uid);
    for (const NamedHost& each : std::vector(state.clients.at(id).place->hosts))
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
  Words is(const What& what) {
    did.clear();
    happen(what);
    settle();
    return did;
  }
  Words passes(Moment time) {
    did.clear();
    const Moment end = now + time;
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
  Moment now = 1000s;
  std::string name{};
  Words did{};
  std::vector<LabStanding> shown{};
  LabMirror mirror{};
  Moment rests_until{};
  std::optional<Action> question{};
  std::optional<StoreChange> late{};
  std::size_t reads = 0;
  WeekMinute hour{};
  bool knows_names = true;
  std::function<void(const Action&)> check = [](const Action&) {};

 private:
  void happen(const What& what) {
    if (mirror.is_whole() && !is_deaf && mirror.revision() != etcd_.revision) {
      mirror.read(etcd_.all());
      has_news_ = true;
    }
    const store_agent::Given given{
        .now = now, .hour = hour, .store = mirror, .is_unread = !mirror.is_whole(), .url = "http://etcd"};
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

  What answer(const Appear&) {
    if (way == Way::is_silent) return NotAnswered{"no answer"};
    StoreChange change;
    change.puts.push_back({key_of(kLabAlive, name), "1.0", "lease"});
    etcd_.make(change);
    mirror.made_here(change, etcd_.revision);
    if (way == Way::loses_answers) return NotAnswered{"no answer"};
    return IsPresent{now + 10s};
  }
  What answer(const Change& asked) {
    const StoreChange change = store_change_of(asked.change);
    if (way == Way::is_silent) {
      if (!change.conditions.empty()) late = change;
      late_until_ = now + 10s;
      return NotAnswered{"no answer"};
    }
    const bool made = etcd_.make(change);
    is_torn_ = is_torn_ || !made;
    if (way == Way::loses_answers) {
      is_torn_ = true;
      return NotAnswered{"no answer"};
    }
    if (made) mirror.made_here(change, etcd_.revision);
    return Changed{made};
  }
  What answer(const Read& asked) {
    if (mirror.is_whole() && !is_torn_ && !asked.in_any_case) return IsRead{true};
    if (way != Way::answers) return NotAnswered{"no answer"};
    if (!mirror.is_whole() || is_torn_) ++reads;
    is_torn_ = false;
    mirror.read(etcd_.all());
    return IsRead{true};
  }
  template <class Other>
  What answer(const Other&) {
    FAIL("it asks nothing");
    return Woke{};
  }

  void perform(const Tell& what) { did.push_back(fmt::format("{}: {}", what.client, what.line)); }
  void perform(const Dismiss& what) { did.push_back(fmt::format("ends {}", what.client)); }
  void perform(const AskLimits& what) { names_asked_.push_back(what); }
  void perform(const Appear& what) { ask(what); }
  void perform(const Change& what) { ask(what); }
  void perform(const Read& what) { ask(what); }
  void perform(const Forget&) { mirror.forget(); }
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
  Moment late_until_{};
  bool is_torn_ = false;
  bool has_news_ = false;
};

void at_desk2(Settings& settings) {
  settings.name = "desk2";
}
void fairly(Settings& settings) {
  settings.order = QueueOrder::fair;
}
void with_one_gpu_each(Settings& settings) {
  settings.limits.always.each.lab_gpus = 1;
}

bool is_told(const Words& did, const std::string& line) {
  return std::ranges::find(did, line) != did.end();
}
std::string ticket_of(const std::string& home, const std::string& hosts, std::uint32_t uid = kBob) {
  return lab_queue::lab_ticket_json(
      {.id = "", .order = 0, .home = home, .uid = uid, .lane = 1, .hosts = {hosts}, .joined = {}});
}
std::string start_of(const std::string& host, std::int64_t pid, std::uint32_t uid = kBob) {
  return lab_queue::lab_start_json({.host = host, .pid = pid, .uid = uid, .gpus = 1});
}

}  // namespace

// --- a place, a start, an end

TEST_CASE("a request gets a place, is told where it may join, and starts where the store says yes") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.comes();
  CHECK(desk.says(one, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1") ==
        Words{"1: open gpu1", "1: answer gpu1", "1: open gpu2", "1: answer gpu2", "1: place 0"});
  const auto ticket = etcd.ticket(desk.id_of(one));
  REQUIRE(ticket);
  CHECK(ticket->hosts == Words{"gpu1", "gpu2"});
  CHECK(ticket->joined.empty());
  CHECK(ticket->uid == kAlice);
  CHECK(ticket->origin == "machine1:101");
  CHECK(desk.says(one, "here gpu1").empty());
  CHECK(desk.says(one, "joined gpu1").empty());
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu1"});
  CHECK(etcd.ticket(desk.id_of(one))->order == ticket->order);
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
  CHECK(etcd.tickets() == 0);
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  CHECK(desk.ends(one).empty());
  CHECK(etcd.starts() == 0);
}

TEST_CASE("presence hangs on a lease, and a place on none") {
  Etcd etcd;
  Desk desk(etcd);
  desk.says(desk.stands("gpu1"), "start gpu1");
  desk.stands("gpu1");
  CHECK(etcd.leased == std::set<std::string>{"/berth/1/alive/desk1"});
}

TEST_CASE("the place of a request that ends goes at once, and the next one is told") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId first = desk.waits("gpu1");
  const ClientId second = desk.waits("gpu1");
  CHECK(desk.did == Words{"2: place 1"});
  CHECK(desk.ends(first) == Words{"2: open gpu1", "2: answer gpu1", "2: place 0"});
  CHECK(etcd.tickets() == 1);
  CHECK(etcd.ticket(desk.id_of(second)));
}

TEST_CASE("a request of two desks may join once the earlier ones stand there") {
  Etcd etcd;
  Desk desk(etcd);
  Desk other(etcd, at_desk2);
  const ClientId first = other.waits("gpu1");
  const ClientId second = desk.waits("gpu1");
  CHECK(desk.did == Words{"1: place 1"});
  other.says(first, "joined gpu1");
  CHECK(desk.is(News{}) == Words{"1: open gpu1", "1: answer gpu1"});
  CHECK(etcd.ticket(desk.id_of(second))->order > etcd.ticket(other.id_of(first))->order);
}

TEST_CASE("while nobody waits the copy is forgotten after a minute, and asked for nothing") {
  Etcd etcd;
  Desk desk(etcd);
  desk.passes(31s);  // it has looked once for what an earlier agent left
  desk.ends(desk.waits("gpu1"));
  desk.passes(59s);
  CHECK(desk.mirror.is_whole());
  desk.passes(20s);
  CHECK(!desk.mirror.is_whole());
  const std::size_t reads = desk.reads;
  desk.passes(600s);
  CHECK(desk.reads == reads);
  desk.waits("gpu1");
  CHECK(desk.reads == reads + 1);
}

TEST_CASE("a new request is written before all keys are read, so that the reading has what is earlier") {
  Etcd etcd;
  Desk desk(etcd);
  desk.is_deaf = true;
  const ClientId one = desk.waits("gpu1");
  CHECK(desk.reads == 1);
  CHECK(etcd.ticket(desk.id_of(one))->order <= desk.mirror.revision());
  CHECK(is_told(desk.did, "1: open gpu1"));
}

TEST_CASE("no request comes before an earlier one of which its agent has not been told yet") {
  Etcd etcd;
  Desk desk(etcd);
  desk.stands("gpu2");
  desk.is_deaf = true;
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  desk.waits("gpu1");
  CHECK(desk.did.empty());
  desk.is_deaf = false;
  CHECK(desk.is(News{}) == Words{"2: place 1"});
}

TEST_CASE("tickets of a machine that is not there keep their places, and after 30 s nobody waits for them") {
  Etcd etcd;
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  Desk desk(etcd);
  desk.waits("gpu1");
  CHECK(desk.did == Words{"1: place 1"});
  CHECK(desk.passes(30s).empty());
  CHECK(is_told(desk.passes(6s), "1: open gpu1"));
  CHECK(etcd.ticket("desk3-1"));
}

// --- the start

TEST_CASE("there is no yes while the store makes no start, and a start that was made late is told again") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  SUBCASE("it is silent") {
    desk.way = Way::is_silent;
    CHECK(!is_told(desk.says(one, "start gpu1"), "1: yes gpu1"));
    CHECK(!is_told(desk.passes(10s), "1: yes gpu1"));
    desk.way = Way::answers;
  }
  SUBCASE("its answer is lost") {
    desk.way = Way::loses_answers;
    CHECK(!is_told(desk.says(one, "start gpu1"), "1: yes gpu1"));
    desk.way = Way::answers;
  }
  CHECK(is_told(desk.passes(2s), "1: yes gpu1"));
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
}

TEST_CASE("a start that is there is no other process's, no other host's, and stays if it is another's") {
  Etcd etcd;
  Desk desk(etcd);
  const std::string id = id_of("desk1", Desk::mark_of(1));
  SUBCASE("of another process") {
    etcd.put(kLabStarts, id, start_of("gpu1", 7));
    CHECK(desk.waits("gpu1") == 1);
    CHECK(desk.says(1, "start gpu1") == Words{"1: no this request was started already", "ends 1"});
    CHECK(etcd.start(id) == "gpu1");
  }
  SUBCASE("of the version before, or garbage") {
    for (const char* value : {"gpu1 1", "", "[[]]", "{"}) {
      etcd.put(kLabStarts, id, value);
      Desk another(etcd);
      another.waits("gpu1");
      CHECK(another.says(1, "start gpu1") == Words{"1: no this request was started already", "ends 1"});
      CHECK(etcd.starts() == 1);
    }
  }
  SUBCASE("of its own, and it asks for another host without letting go of it") {
    desk.stands("gpu1,gpu2");
    desk.way = Way::loses_answers;
    desk.says(1, "start gpu1");
    CHECK(etcd.start(id) == "gpu1");
    desk.says(1, "start gpu2");
    desk.way = Way::answers;
    CHECK(is_told(desk.passes(2s), "1: no this request was started already"));
    CHECK(etcd.starts() == 0);  // as its connection has ended
  }
}

TEST_CASE("one that was told yes is told yes again for this host, and for no other") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.says(one, "start gpu1");
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
  SUBCASE("also after the store was wiped") {
    etcd.wipe();
  }
  SUBCASE("the store has its start") {}
  CHECK(desk.says(one, "start gpu2") == Words{"1: no this request was started already", "ends 1"});
  CHECK(etcd.starts() == 0);
}

TEST_CASE("a host that is lost before the answer to its start costs the request no other") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.way = Way::loses_answers;
  desk.says(one, "start gpu1");
  REQUIRE(etcd.start(desk.id_of(one)) == "gpu1");
  desk.says(one, "left gpu1");
  SUBCASE("it asks for another at once") {
    desk.says(one, "start gpu2");
  }
  SUBCASE("it asks for another later") {
    desk.way = Way::answers;
    desk.passes(2s);
    CHECK(etcd.starts() == 0);
    REQUIRE(etcd.ticket(desk.id_of(one)));
    CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu2"});
    desk.says(one, "start gpu2");
  }
  desk.way = Way::answers;
  desk.passes(2s);
  CHECK(etcd.start(desk.id_of(one)) == "gpu2");
}

TEST_CASE("a host that is lost with the yes, or gives the GPUs away, costs the request no other") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
  SUBCASE("left") {
    CHECK(desk.says(one, "left gpu1").empty());
  }
  SUBCASE("closed") {
    CHECK(desk.says(one, "closed gpu1") == Words{"1: open gpu1", "1: answer gpu1"});
  }
  CHECK(etcd.starts() == 0);
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu2"});
  CHECK(desk.says(one, "start gpu2") == Words{"1: yes gpu2"});
  CHECK(etcd.start(desk.id_of(one)) == "gpu2");
}

TEST_CASE("a host that is lost while its start is being written gets no yes, and the start is taken back") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.way = Way::holds;
  desk.says(one, "start gpu1");
  SUBCASE("it waits") {
    desk.says(one, "left gpu1");
    CHECK(desk.goes_on().empty());
    CHECK(etcd.starts() == 0);
    CHECK(etcd.ticket(desk.id_of(one)));
  }
  SUBCASE("it asks for another") {
    desk.says(one, "left gpu1");
    desk.says(one, "start gpu2");
    CHECK(desk.goes_on() == Words{"1: yes gpu2"});
    CHECK(etcd.start(desk.id_of(one)) == "gpu2");
  }
  SUBCASE("it joins and asks again") {
    desk.says(one, "closed gpu1");
    desk.says(one, "joined gpu1");
    desk.says(one, "start gpu1");
    CHECK(desk.goes_on() == Words{"1: yes gpu1"});
  }
  SUBCASE("it ends") {
    desk.ends(one);
    CHECK(desk.goes_on().empty());
    CHECK(etcd.starts() == 0);
    CHECK(etcd.tickets() == 0);
  }
}

TEST_CASE("a start that another agent's change outruns is not made, and what lies there is read again") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  desk.is_deaf = true;
  etcd.remove(kLabTickets, desk.id_of(one));
  const std::size_t reads = desk.reads;
  CHECK(is_told(desk.says(one, "start gpu1"), "1: yes gpu1"));  // with a ticket of its own again
  CHECK(desk.reads > reads);
  CHECK(etcd.tickets() == 0);
}

// --- what clients say

TEST_CASE("what this version does not know, or makes no sense, ends the connection") {
  for (const std::string line :
       {"", "what", "line x", "wait", "wait short 1 gpu1 1", "wait 0123456789abcdefX 1 gpu1 1", "here gpu1",
        "start gpu1", "wait 0123456789abcdef 1 gpu1 1 gpu1 more", "\x1b[2J"}) {
    Etcd etcd;
    Desk desk(etcd);
    CHECK(desk.says(desk.comes(), line) ==
          Words{"1: no it was asked what this version does not know", "ends 1"});
    CHECK(etcd.tickets() == 0);
  }
}

TEST_CASE("a request that names no hosts, or too many, or no GPUs, is told so") {
  Etcd etcd;
  Desk desk(etcd);
  const std::string wait = "wait 0123456789abcdef ";
  CHECK(desk.says(desk.comes(), wait + "1 ,, 1").front() == "1: no these are no hosts");
  CHECK(desk.says(desk.comes(), wait + "1 -o 1").front() == "2: no these are no hosts");
  CHECK(desk.says(desk.comes(), wait + "x gpu1").front() == "3: no this is no number of GPUs");
  std::string many;
  for (int i = 0; i < 257; ++i) many += fmt::format("gpu{},", i);
  CHECK(desk.says(desk.comes(), wait + "1 " + many + " 1").front() ==
        "4: no a request may name 256 hosts at most; name fewer with --hosts or --host");
  CHECK(etcd.tickets() == 0);
  CHECK(desk.state.clients.empty());
}

TEST_CASE("a request of the version before does not say how many GPUs it wants, as its lane does") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.comes();
  desk.says(one, "wait " + Desk::mark_of(one) + " 4 gpu1");
  CHECK(etcd.ticket(desk.id_of(one))->gpus == 4);
  CHECK(etcd.ticket(desk.id_of(one))->lane == 4);
}

TEST_CASE("a place belongs to its connection and its user") {
  Etcd etcd;
  Desk desk(etcd);
  const std::string wait = "wait " + Desk::mark_of(1) + " 1 gpu1 1";
  desk.waits("gpu1");
  CHECK(desk.says(desk.comes(), wait) ==
        Words{"2: no this request has its place on another connection", "ends 2"});
  CHECK(desk.says(1, wait).front() == "1: no it was asked what this version does not know");
  CHECK(etcd.tickets() == 0);
  etcd.put(kLabTickets, desk.id_of(9), ticket_of("desk1", "gpu1", kBob));
  const ClientId other = desk.comes(kAlice);
  CHECK(desk.says(other, "wait " + Desk::mark_of(9) + " 1 gpu1 1") ==
        Words{"3: no another user has a place of this name", "ends 3"});
  CHECK(etcd.ticket(desk.id_of(9)));
}

TEST_CASE("words that cross, of a host that was left, move nothing") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.says(one, "left gpu1");
  for (const char* word : {"here gpu1", "joined gpu1", "closed gpu1", "left gpu1"})
    CHECK(desk.says(one, word).empty());
  CHECK(etcd.ticket(desk.id_of(one))->hosts == Words{"gpu2"});
  // And it is asked to close no host that it has left.
  etcd.put(kLabStarts, "desk9-1", start_of("gpu9", 1, kAlice));
  const Words did = desk.is(News{});
  CHECK(is_told(did, "1: close gpu2"));
  CHECK(!is_told(did, "1: close gpu1"));
  CHECK(desk.says(one, "start gpu1").front() == "1: no it was asked what this version does not know");
}

TEST_CASE("one that comes back to an agent that has started again keeps its place and its order") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  const auto before = etcd.ticket(desk.id_of(one));
  desk.waits("gpu1");
  desk.restart();
  const ClientId back = desk.comes_as(one);
  desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1");
  for (const char* word : {"joined gpu1", "joined gpu2"}) desk.says(back, word);
  CHECK(etcd.ticket(desk.id_of(one)) == before);
  CHECK(desk.says(back, "start gpu2") == Words{fmt::format("{}: yes gpu2", back)});
  // The other one has not come back, and its place goes after 30 s.
  desk.passes(29s);
  CHECK(etcd.tickets() == 1);
  desk.passes(2s);
  CHECK(etcd.tickets() == 0);
  CHECK(etcd.start(desk.id_of(one)) == "gpu2");
}

TEST_CASE("one that comes back for its start, which its agent did not live to tell, is told yes") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  desk.way = Way::loses_answers;
  desk.says(one, "start gpu1");
  desk.way = Way::answers;
  desk.restart();
  const ClientId back = desk.comes_as(one);
  desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1");
  // It has not said yet that it asks: nothing is taken back.
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  SUBCASE("it still asks") {
    CHECK(desk.says(back, "start gpu1") == Words{fmt::format("{}: yes gpu1", back)});
  }
  SUBCASE("it has let the host go") {
    desk.says(back, "closed gpu1");
    CHECK(etcd.starts() == 0);
    CHECK(etcd.ticket(desk.id_of(one)));
  }
}

TEST_CASE("one whose command runs comes back with its start, and gets no place") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  desk.says(one, "start gpu1");
  desk.restart();
  SUBCASE("the start is there") {}
  SUBCASE("the start is gone") {
    etcd.remove(kLabStarts, desk.id_of(one));
  }
  const ClientId back = desk.comes_as(one);
  CHECK(desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1 1 gpu1").empty());
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  CHECK(etcd.as_known().start_of(desk.id_of(one))->pid == desk.pid_of(one));
  CHECK(etcd.tickets() == 0);
  desk.passes(40s);
  CHECK(etcd.starts() == 1);
  desk.ends(back);
  CHECK(etcd.starts() == 0);
}

// --- a store that fails

TEST_CASE("if the store does not answer, those who wait are told once, and keep their places") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  const auto before = etcd.ticket(desk.id_of(one));
  desk.way = Way::is_silent;
  desk.passes(13s);
  CHECK(desk.did.front().find("log: the store at http://etcd does not answer, and all keep") == 0);
  CHECK(is_told(desk.did, "1: silent http://etcd: no answer"));
  CHECK(std::ranges::count(desk.did, "asks another") > 1);
  desk.passes(60s);
  CHECK(!is_told(desk.did, "1: silent http://etcd: no answer"));
  desk.comes();
  CHECK(desk.says(2, "wait " + Desk::mark_of(2) + " 1 gpu1 1") == Words{"2: silent http://etcd: no answer"});
  desk.way = Way::answers;
  desk.passes(2s);
  CHECK(is_told(desk.did, "log: the store at http://etcd answers again"));
  CHECK(is_told(desk.did, "1: heard"));
  CHECK(is_told(desk.did, "2: heard"));
  CHECK(etcd.ticket(desk.id_of(one)) == before);
}

TEST_CASE("a ticket that is written late, after its request has ended, does not stay") {
  Etcd etcd;
  Desk desk(etcd);
  desk.passes(95s);  // what was left before is removed already
  desk.way = Way::is_silent;
  const ClientId one = desk.waits("gpu1");
  desk.ends(one);
  desk.passes(3s);
  StoreChange ticket;
  ticket.conditions = {{key_of(kLabTickets, desk.id_of(one)), 0}};
  ticket.puts.push_back({key_of(kLabTickets, desk.id_of(one)), ticket_of("desk1", "gpu1", kAlice)});
  desk.way = Way::answers;
  desk.passes(4s);
  etcd.make(ticket);
  REQUIRE(etcd.tickets() == 1);
  desk.passes(20s);
  CHECK(etcd.tickets() == 0);
}

TEST_CASE("what a killed agent left here goes after 30 s, also if nobody waits, and no other home's does") {
  Etcd etcd;
  etcd.put(kLabTickets, "desk1-aa", ticket_of("desk1", "gpu1"));
  etcd.put(kLabStarts, "desk1-bb", start_of("gpu1", 7));
  etcd.put(kLabTickets, "desk2-aa", ticket_of("desk2", "gpu1"));
  etcd.put(kLabStarts, "desk2-bb", start_of("gpu1", 7));
  Desk desk(etcd);
  desk.passes(29s);
  CHECK(etcd.tickets() == 2);
  desk.passes(2s);
  CHECK(etcd.tickets() == 1);
  CHECK(etcd.ticket("desk2-aa"));
  CHECK(etcd.start("desk2-bb") == "gpu1");
  CHECK(etcd.starts() == 1);
}

TEST_CASE("nothing of a request that lives is swept") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId runs = desk.stands("gpu1");
  desk.says(runs, "start gpu1");
  const ClientId waits = desk.stands("gpu1");
  const auto ticket = etcd.ticket(desk.id_of(waits));
  const std::string start = key_of(kLabStarts, desk.id_of(runs));
  const auto began = etcd.keys_.at(start);
  desk.passes(100s);
  CHECK(etcd.ticket(desk.id_of(waits)) == ticket);
  CHECK(etcd.keys_.at(start) == began);
}

TEST_CASE("after the store was wiped those who wait are there again, and those who run have their starts") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId runs = desk.stands("gpu1");
  desk.says(runs, "start gpu1");
  const ClientId waits = desk.stands("gpu1,gpu2");
  etcd.wipe();
  desk.is(News{});
  desk.passes(2s);
  CHECK(etcd.tickets() == 1);
  CHECK(etcd.ticket(desk.id_of(waits))->joined == Words{"gpu1", "gpu2"});
  CHECK(etcd.start(desk.id_of(runs)) == "gpu1");
  CHECK(etcd.as_known().alive().contains("desk1"));
}

TEST_CASE("after the store was set back a request that runs gets its start again, and its ticket goes") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1,gpu2");
  const auto then = etcd.keys_;
  desk.says(one, "start gpu1");
  etcd.keys_ = then;
  ++etcd.revision;
  CHECK(desk.is(News{}).empty());
  CHECK(etcd.start(desk.id_of(one)) == "gpu1");
  CHECK(etcd.tickets() == 0);
}

TEST_CASE("what somebody else wrote into the store keeps nobody waiting") {
  for (const char* value : {"", "null", "[[]]", "{", R"({"home":1,"uid":"x","lane":[],"hosts":{}})"}) {
    Etcd etcd;
    for (const std::string_view folder : {kLabTickets, kLabStarts, kLabAlive})
      for (const char* name : {"x", "desk1-0123456789abcdef", "../.."}) etcd.put(folder, name, value);
    Desk desk(etcd);
    CHECK(desk.says(desk.stands("gpu1"), "start gpu1") == Words{"1: yes gpu1"});
  }
}

TEST_CASE("an answer that the shell has lost is taken for none, and asked for again") {
  Etcd etcd;
  Desk desk(etcd);
  const ClientId one = desk.stands("gpu1");
  desk.way = Way::holds;
  desk.says(one, "start gpu1");
  desk.question.reset();
  desk.way = Way::answers;
  CHECK(is_told(desk.is(Woke{}), "1: silent http://etcd: its answer was lost"));
  CHECK(is_told(desk.passes(2s), "1: yes gpu1"));
}

// --- turns and limits

TEST_CASE("one user's many requests keep no other waiting in the fair order") {
  for (const bool is_fair : {true, false}) {
    Etcd etcd;
    Desk desk(etcd, is_fair ? fairly : std::function<void(Settings&)>([](Settings&) {}));
    for (int i = 0; i < 8; ++i) desk.stands("gpu1");
    desk.waits("gpu1");
    desk.waits("gpu1", kBob);
    CHECK(is_told(desk.did, is_fair ? "10: place 1" : "10: place 9"));
    CHECK(is_told(desk.did, "10: open gpu1") == is_fair);
  }
}

TEST_CASE("a request keeps its fair number, started, taken back, and also if the store was wiped") {
  Etcd etcd;
  Desk desk(etcd, fairly);
  desk.stands("gpu1");
  const ClientId one = desk.stands("gpu1,gpu2");
  const auto number = etcd.ticket(desk.id_of(one))->fair_number;
  REQUIRE(number);
  desk.says(one, "start gpu1");
  CHECK(etcd.as_known().start_of(desk.id_of(one))->fair_number == number);
  SUBCASE("taken back") {}
  SUBCASE("taken back by an agent that has started since") {
    desk.restart();
    const ClientId back = desk.comes_as(one);
    desk.says(back, "wait " + Desk::mark_of(one) + " 1 gpu1,gpu2 1");
    desk.says(back, "closed gpu1");
    CHECK(etcd.ticket(desk.id_of(one))->fair_number == number);
    return;
  }
  SUBCASE("wiped while it runs") {
    etcd.wipe();
    desk.is(News{});
    CHECK(etcd.as_known().start_of(desk.id_of(one))->fair_number == number);
  }
  desk.says(one, "left gpu1");
  CHECK(etcd.ticket(desk.id_of(one))->fair_number == number);
  desk.ends(1);  // a number that were given now would be another
  etcd.wipe();
  desk.is(News{});
  CHECK(etcd.ticket(desk.id_of(one))->fair_number == number);
}

TEST_CASE("a request over its user's limit has a place and is told why, and nobody waits for it") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  desk.waits("gpu1");
  const ClientId second = desk.waits("gpu1");
  REQUIRE(desk.did.size() == 2);
  CHECK(desk.did[0].find("2: limit your limit in the lab is 1 GPU") == 0);
  CHECK(desk.did[1] == "2: place 1");
  CHECK(etcd.ticket(desk.id_of(second))->most == 1);
  desk.says(1, "joined gpu1");
  desk.waits("gpu1", kBob);
  CHECK(is_told(desk.did, "3: open gpu1"));
  const Words did = desk.ends(1);
  CHECK(is_told(did, "2: limit "));
  CHECK(is_told(did, "2: open gpu1"));
  CHECK(desk.says(desk.comes(), "wait " + Desk::mark_of(4) + " 2 gpu1 2").front().find("4: no ") == 0);
}

TEST_CASE("a request that stands on a host lets it go while its user may start nothing") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1");
  etcd.put(kLabStarts, "desk9-1", start_of("gpu9", 1, kAlice));
  const Words did = desk.is(News{});
  REQUIRE(!did.empty());
  CHECK(did.front() == "1: close gpu1");
  // A start that crosses is not made, also if its user might start it again.
  CHECK(desk.says(one, "start gpu1").empty());
  etcd.remove(kLabStarts, "desk9-1");
  desk.is(News{});
  CHECK(desk.says(one, "start gpu1").empty());
  CHECK(etcd.starts() == 0);
  CHECK(etcd.ticket(desk.id_of(one))->joined == Words{"gpu1"});
  CHECK(is_told(desk.says(one, "closed gpu1"), "1: open gpu1"));
  CHECK(etcd.ticket(desk.id_of(one))->joined.empty());
  desk.says(one, "joined gpu1");
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
}

TEST_CASE("one that does not know close is told again and goes on, as the version before") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1");
  etcd.put(kLabStarts, "desk9-1", start_of("gpu9", 1, kAlice));
  CHECK(is_told(desk.is(News{}), "1: close gpu1"));
  CHECK(is_told(desk.passes(16s), "1: close gpu1"));
  etcd.remove(kLabStarts, "desk9-1");
  desk.passes(16s);
  CHECK(desk.says(one, "start gpu1") == Words{"1: yes gpu1"});
}

TEST_CASE("two machines that start requests of one user at the same moment do not start too many") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  Desk other(etcd, [](Settings& settings) {
    at_desk2(settings);
    with_one_gpu_each(settings);
  });
  const ClientId late = desk.stands("gpu2");
  const ClientId early = other.waits("gpu1");
  desk.is_deaf = true;
  other.says(early, "start gpu1");
  REQUIRE(etcd.starts() == 1);
  const Words did = desk.says(late, "start gpu2");
  CHECK(etcd.starts() == 1);
  CHECK(is_told(did, "1: close gpu2"));
  CHECK(!is_told(did, "1: yes gpu2"));
}

TEST_CASE("what runs counts for its user after the store was wiped, also for who adds up at that moment") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  const ClientId one = desk.stands("gpu1");
  desk.says(one, "start gpu1");
  etcd.wipe();
  desk.is(News{});
  CHECK(etcd.starts() == 1);
  CHECK(etcd.as_known().revisions(key_of(kLabUsers, "1000")).changed != 0);
}

TEST_CASE("until the name service has answered a request has no ticket, and is told why after 3 s") {
  Etcd etcd;
  Desk desk(etcd, with_one_gpu_each);
  desk.knows_names = false;
  const ClientId one = desk.waits("gpu1");
  CHECK(etcd.tickets() == 0);
  CHECK(desk.passes(2s).empty());
  CHECK(desk.passes(2s) ==
        Words{"1: limit the name service of this machine has not said yet which limits apply to you"});
  const Words did = desk.is(LimitsKnown{one, {kAlice, "alice", {}}});
  CHECK(is_told(did, "1: limit "));
  CHECK(is_told(did, "1: open gpu1"));
  CHECK(etcd.ticket(desk.id_of(one))->most == 1);
}

TEST_CASE("the limit in the ticket changes with the hours") {
  Etcd etcd;
  Desk desk(etcd, [](Settings& settings) {
    with_one_gpu_each(settings);
    HourlyAllowances night{*week_hours_from_text("22:00-06:00")};
    night.limits.each.lab_gpus = 4;
    settings.limits.hours.push_back(night);
  });
  desk.hour.minute = 12 * 60;
  const ClientId one = desk.waits("gpu1");
  CHECK(etcd.ticket(desk.id_of(one))->most == 1);
  desk.hour.minute = 23 * 60;
  desk.passes(6s);
  CHECK(etcd.ticket(desk.id_of(one))->most == 4);
}

// --- who is waited for

TEST_CASE("one that does not answer is waited for 5 s, and the user's next ones a moment only") {
  Etcd etcd;
  Desk desk(etcd);
  desk.waits("gpu1");
  desk.waits("gpu1", kBob);
  CHECK(desk.passes(4900ms).empty());
  CHECK(is_told(desk.passes(200ms), "2: open gpu1"));
  desk.says(2, "joined gpu1");
  desk.waits("gpu1");
  desk.waits("gpu1", kBob);
  CHECK(is_told(desk.passes(200ms), "4: open gpu1"));
  // It may still join, and is not asked to hurry.
  desk.says(1, "joined gpu1");
  CHECK(etcd.ticket(desk.id_of(1))->joined == Words{"gpu1"});
}

TEST_CASE("one that answers is waited for 60 s, and again once it is heard of") {
  Etcd etcd;
  Desk desk(etcd);
  desk.waits("gpu1");
  desk.says(1, "here gpu1");
  desk.waits("gpu1", kBob);
  CHECK(desk.passes(59s).empty());
  CHECK(is_told(desk.passes(2s), "2: open gpu1"));
  CHECK(etcd.ticket(desk.id_of(1))->hosts.empty());
  desk.says(1, "joined gpu1");
  CHECK(etcd.ticket(desk.id_of(1))->hosts == Words{"gpu1"});
}

// --- people who look

TEST_CASE("the status and the queue are told to those who ask, also of a store that is silent") {
  Etcd etcd;
  Desk desk(etcd);
  desk.stands("gpu1");
  desk.waits("gpu1");
  const ClientId looks = desk.comes();
  CHECK(desk.says(looks, "status") ==
        Words{"3: store http://etcd", "3: name desk1", "3: alive desk1 1.0", "3: waiting 2", "3: end"});
  CHECK(desk.says(looks, "line 0") == Words{"3: stands 1 machine1:101", "3: outside 1", "3: end"});
  CHECK(desk.says(looks, "line 7") == Words{"3: outside 1", "3: end"});
  desk.way = Way::is_silent;
  CHECK(is_told(desk.says(looks, "line 0"), "3: silent http://etcd: no answer"));
  desk.says(looks, "status");
  CHECK(is_told(desk.passes(2s), "3: silent http://etcd: no answer"));
}

TEST_CASE("a long queue is told in parts of 500") {
  LabOrder order;
  for (int i = 0; i < 501; ++i) order.standing.push_back({"a:1", 1});
  order.standing.front().origin = std::string(200, 'x');
  const Words lines = queue_answer(order, 0);
  CHECK(lines.size() == 502);
  CHECK(lines.front() == "stands 1 " + std::string(80, 'x'));
  CHECK(lines.back() == "more 500");
  CHECK(queue_answer(order, 500) == Words{"stands 1 a:1", "outside 0"});
}

TEST_CASE("where the queue is shown, it is shown anew a second after news at the earliest") {
  Etcd etcd;
  Desk desk(etcd, [](Settings& settings) { settings.shows = true; });
  desk.passes(2s);
  CHECK(desk.shown.empty());
  desk.stands("gpu1");
  CHECK(desk.shown.empty());
  desk.passes(1100ms);
  CHECK(desk.shown == std::vector<LabStanding>{{"machine1:101", 1}});
  desk.ends(1);
  etcd.put(kLabTickets, "desk3-1", ticket_of("desk3", "gpu1"));
  desk.passes(6s);
  CHECK(desk.shown.empty());
}

namespace {

/// A machine with requests that may lie, repeat themselves, come back or end, an agent that may be
/// killed, and an etcd that may be silent, lose answers, be wiped or set back, and where others
/// write too.
class AnyLab {
 public:
  void go() {
    etcd_.before = [this](const StoreChange& change) { look_at(change); };
    const int kind = below(4);
    Desk desk(etcd_, [kind](Settings& settings) {
      if (kind == 1) fairly(settings);
      if (kind == 2) with_one_gpu_each(settings);
    });
    desk_ = &desk;
    is_fair_ = kind == 1;
    has_limits_ = kind == 2;
    desk.check = [this](const Action& action) {
      if (const auto* told = std::get_if<Tell>(&action)) hear(*told);
      if (const auto* ended = std::get_if<Dismiss>(&action)) people_.erase(ended->client);
    };
    etcd_.put(kLabTickets, "desk2-aa", ticket_of("desk2", "gpu1"));
    etcd_.put(kLabAlive, "desk2", "1.0");
    const int events = below(80);
    for (int i = 0; i < events; ++i) {
      if (below(3) == 0)
        any_fault();
      else
        any_word();
    }
    let_all_be_well();
  }

 private:
  /// A process with a connection, which may be one that has come back.
  struct Person {
    ClientId mark = 0;  ///< the first connection of the process; 0: it has not asked for a place
    std::string yes{};  ///< the host of its yes
    std::set<std::string> left{};
  };

  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  static std::string any_host() { return fmt::format("gpu{}", 1 + below(3)); }

  std::string id_of(const Person& person) const { return desk_->id_of(person.mark); }
  /// nullptr: nobody living has this place.
  Person* owner_of(const std::string& id) {
    for (auto& [client, each] : people_)
      if (each.mark != 0 && id_of(each) == id && desk_->state.clients.contains(client) &&
          desk_->state.clients.at(client).place)
        return &each;
    return nullptr;
  }

  // --- what happens

  void any_word() {
    if (people_.empty() || below(6) == 0) return come();
    auto at = people_.begin();
    std::advance(at, below(static_cast<int>(people_.size())));
    const ClientId client = at->first;
    Person& person = at->second;
    if (person.mark == 0) return ask_for_place(client, person, client);
    const std::string host = any_host();
    switch (below(12)) {
      case 0:
        return say(client, "here " + host);
      case 1:
        person.left.insert(host);
        return give_back(client, host, "left ");
      case 2:
        return give_back(client, host, "closed ");
      case 3:
        return end(client);
      case 4:
        return say(client, std::vector<std::string>{"status", "line 0", "line 9", "what"}.at(
                               static_cast<std::size_t>(below(4))));
      case 5:
      case 6:
      case 7:
        return say(client, "start " + host);
      default:
        return say(client, "joined " + host);
    }
  }

  void come() {
    const auto uid = below(2) == 0 ? kAlice : kBob;
    const ClientId client = desk_->comes(uid);
    people_[client] = {};
    uids_[client] = uid;
    if (below(4) != 0) ask_for_place(client, people_[client], client);
  }

  void ask_for_place(ClientId client, Person& person, ClientId mark) {
    person.mark = mark;
    say(client, fmt::format("wait {} 1 gpu1,gpu2,gpu3 1", Desk::mark_of(mark)));
  }

  void say(ClientId client, const std::string& line) {
    const Words did = desk_->is(Said{client, line});
    RC_LOG() << client << " says: " << line << " -> " << fmt::format("{}", fmt::join(did, "; ")) << "\n";
  }
  void give_back(ClientId client, const std::string& host, const char* word) {
    Person& person = people_.at(client);
    if (person.yes == host) person.yes.clear();
    say(client, word + host);
  }
  void end(ClientId client) {
    people_.erase(client);
    desk_->ends(client);
  }

  void any_fault() {
    switch (below(12)) {
      case 0:
        desk_->way = Way::is_silent;
        return;
      case 1:
        desk_->way = Way::loses_answers;
        return;
      case 2:
        desk_->way = Way::holds;
        return;
      case 3:
      case 4:
        desk_->goes_on();
        return;
      case 5:
        desk_->makes_late();
        return;
      case 6:
        desk_->is_deaf = below(2) == 0;
        return;
      case 7:
        if (below(3) == 0) wipe();
        return;
      case 8:
        return restart();
      case 9:
        return others_write();
      case 10:
        // An answer to nothing.
        if (desk_->question) return;
        desk_->is(std::vector<What>{
            Changed{true}, Changed{false}, IsRead{true}, IsPresent{}, NotAnswered{"why"},
            News{}}.at(static_cast<std::size_t>(below(6))));
        return;
      default:
        desk_->passes(std::chrono::milliseconds(below(40000)));
    }
  }

  /// Nothing that was asked before the store was replaced is made there later.
  void wipe() {
    etcd_.wipe();
    desk_->late.reset();
    // A number that the agent has not heard of is lost with the store.
    numbers_.clear();
    for (const auto& [client, each] : desk_->state.clients)
      if (each.place && each.place->kept.fair_number)
        numbers_[each.place->kept.id] = *each.place->kept.fair_number;
  }

  /// The agent is killed. Of its clients some come back, and say what they have said before.
  void restart() {
    std::map<ClientId, Person> before = std::exchange(people_, {});
    numbers_.clear();  // which the store has, if it is not wiped
    desk_->restart();
    for (auto& [client, each] : before) {
      if (each.mark == 0 || below(3) == 0) continue;
      const ClientId back = desk_->comes_as(client, uids_.at(client));
      uids_[back] = uids_.at(client);
      each.left.clear();
      people_[back] = each;
      std::string wait = fmt::format("wait {} 1 gpu1,gpu2,gpu3 1", Desk::mark_of(each.mark));
      if (!each.yes.empty()) wait += " " + each.yes;
      say(back, wait);
    }
  }

  void others_write() {
    switch (below(4)) {
      case 0:
        return etcd_.put(kLabTickets, fmt::format("desk2-{}", below(3)), ticket_of("desk2", any_host()));
      case 1:
        return etcd_.put(kLabStarts, fmt::format("desk2-{}", below(3)), start_of(any_host(), 1, kAlice));
      case 2:
        return etcd_.remove(kLabStarts, fmt::format("desk2-{}", below(3)));
      default:
        return etcd_.put(kLabTickets, fmt::format("desk1-{}", below(3)), "{");
    }
  }

  // --- what must be so

  void hear(const Tell& told) {
    const auto found = people_.find(told.client);
    if (found == people_.end() || told.line.find("yes ") != 0) return;
    Person& person = found->second;
    const std::string host = told.line.substr(4);
    // One yes, for a start that the store has, and for no host that was lost.
    RC_ASSERT((person.yes.empty() || person.yes == host));
    RC_ASSERT(!person.left.contains(host));
    const auto claim = claims_.find(id_of(person));
    RC_ASSERT((claim != claims_.end() && claim->second == host));
    person.yes = host;
  }

  /// Each change as it is made: before it, etcd has what it had.
  void look_at(const StoreChange& change) {
    for (const StoreChange::Put& each : change.puts) {
      if (const auto id = name_in(kLabStarts, each.key)) {
        if (id->find("desk1-") != 0) continue;
        RC_ASSERT(!etcd_.keys_.contains(each.key));
        claims_[*id] = lab_queue::read_lab_start(each.value).host;
        look_at_number(*id, lab_queue::read_lab_start(each.value).fair_number);
      }
      if (const auto id = name_in(kLabTickets, each.key)) {
        const auto ticket = lab_queue::read_lab_ticket(*id, {each.key, each.value, 1, 1});
        if (id->find("desk1-") != 0 || !ticket) continue;
        // No place beside a start.
        const std::string start = key_of(kLabStarts, *id);
        const bool is_back = std::ranges::find(change.removed, start) != change.removed.end();
        RC_ASSERT((!etcd_.keys_.contains(start) || is_back));
        look_at_number(*id, ticket->fair_number);
      }
    }
    for (const std::string& key : change.removed) look_at_removal(key, change);
  }

  void look_at_removal(const std::string& key, const StoreChange& change) {
    const auto ticket = name_in(kLabTickets, key);
    const auto start = name_in(kLabStarts, key);
    // What is removed without a condition is nobody's who lives.
    if (change.conditions.empty() && etcd_.keys_.contains(key) && desk_ != nullptr) {
      if (ticket && ticket->find("desk1-") == 0) RC_ASSERT((owner_of(*ticket) == nullptr));
      if (start && start->find("desk1-") == 0) RC_ASSERT((owner_of(*start) == nullptr));
    }
    if (start) {
      // A start that was told is not taken back while its request may run it.
      if (const Person* owner = owner_of(*start)) RC_ASSERT(owner->yes.empty());
      claims_.erase(*start);
    }
  }

  void look_at_number(const std::string& id, std::optional<std::int64_t> number) {
    if (!is_fair_) return;
    RC_ASSERT(number);
    const auto [known, is_new] = numbers_.try_emplace(id, *number);
    RC_ASSERT((is_new || known->second == *number || owner_of(id) == nullptr));
    known->second = *number;
  }

  static std::optional<std::string> name_in(std::string_view folder, const std::string& key) {
    if (key.find(folder) != 0) return std::nullopt;
    return key.substr(folder.size());
  }

  // --- from here on nobody lies, and nothing is lost

  void let_all_be_well() {
    desk_->goes_on();
    desk_->is_deaf = false;
    desk_->makes_late();
    desk_->passes(50s);
    desk_->is(News{});
    check_all();
    // Of the user's requests on the other machine none counts any more.
    for (const char* each : {"desk2-aa", "desk2-0", "desk2-1", "desk2-2"}) {
      etcd_.remove(kLabStarts, each);
      etcd_.remove(kLabTickets, each);
    }
    // Whoever waits, and lets go of what it asked for, gets an answer to its start.
    const std::map<ClientId, Person> all = people_;
    for (const auto& [client, person] : all)
      if (!person.yes.empty() || (has_limits_ && client != all.rbegin()->first)) end(client);
    const std::map<ClientId, Person> waiting = people_;
    for (const auto& [client, person] : waiting)
      if (person.mark != 0) starts_somewhere(client);
    const std::map<ClientId, Person> rest = people_;
    for (const auto& each : rest) end(each.first);
    desk_->passes(60s);
    for (const auto& [key, value] : etcd_.keys_) {
      const auto ticket = name_in(kLabTickets, key);
      RC_ASSERT((!ticket || ticket->find("desk1-") != 0 || value.value == "{"));
      RC_ASSERT(key.find("/berth/1/start/desk1-") != 0);
    }
  }

  void starts_somewhere(ClientId client) {
    const auto hosts = desk_->state.clients.at(client).place->hosts;
    const auto usable = std::ranges::find_if(
        hosts, [](const NamedHost& each) { return !std::holds_alternative<Left>(each.how); });
    if (usable == hosts.end()) return;
    for (const char* each : {"gpu1", "gpu2", "gpu3"}) give_back(client, each, "closed ");
    say(client, "joined " + usable->name);
    say(client, "start " + usable->name);
    desk_->passes(20s);
    RC_ASSERT(people_.at(client).yes == usable->name);
    end(client);
  }

  /// Each living request has what it should, and nobody else has anything.
  void check_all() {
    const LabMirror known = etcd_.as_known();
    for (const auto& [client, person] : people_) {
      if (person.mark == 0) continue;
      const auto ticket = known.queue().find(id_of(person));
      const LabStart* start = known.start_of(id_of(person));
      RC_ASSERT(ticket.has_value() != (start != nullptr));
      if (!person.yes.empty()) RC_ASSERT((start != nullptr && start->host == person.yes));
    }
    for (const std::string& id : known.queue().of_home("desk1")) RC_ASSERT((owner_of(id) != nullptr));
    for (const auto& [id, start] : known.starts())
      RC_ASSERT((berth::home_of(id) != "desk1" || owner_of(id) != nullptr));
  }

  Etcd etcd_{};
  Desk* desk_ = nullptr;
  bool is_fair_ = false, has_limits_ = false;
  std::map<ClientId, Person> people_{};
  std::map<ClientId, std::uint32_t> uids_{};
  std::map<std::string, std::string> claims_{};  ///< the starts that were made and not removed
  std::map<std::string, std::int64_t> numbers_{};
};

}  // namespace

TEST_CASE(
    "whatever is lost, late, wiped or told again, no yes is without a start, and nothing is left behind") {
  CHECK(rc::check("any lab", [] { AnyLab().go(); }));
}

}  // namespace berth::store_agent_test
