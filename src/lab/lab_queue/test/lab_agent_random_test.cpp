#include "berth/lab_queue/model/lab_agent_step.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "berth/lab_queue/test/agent_desk.h"
#include "property.h"

namespace berth::lab_agent_test::lab_agent_random_test {

namespace {

/// A machine with requests that may lie, repeat themselves, come back or end, an agent that may be
/// killed, and an etcd that may be silent, lose answers, be wiped or set back, and where others
/// write too.
class AnyLab {
 public:
  void go() {
    etcd_.before = [this](const LabChange& change) { look_at(change); };
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
    ClientId mark = 0;  ///< the first connection of the process; 0: it has not asked for an entry
    std::string yes{};  ///< the host of its yes
    std::set<std::string> left{};
  };

  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  static std::string any_host() { return fmt::format("gpu{}", 1 + below(3)); }

  std::string id_of(const Person& person) const { return desk_->id_of(person.mark); }
  /// nullptr: nobody living has this entry.
  Person* owner_of(const std::string& id) {
    for (auto& [client, each] : people_)
      if (each.mark != 0 && id_of(each) == id && desk_->state.clients.contains(client) &&
          desk_->state.clients.at(client).entry)
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
        desk_->is(std::vector<Event>{
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
      if (each.entry && each.entry->kept.number) numbers_[each.entry->kept.id] = *each.entry->kept.number;
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
    // What an agent asked for that was killed since may be made after the next one has read the
    // start. Then the start is put there again.
    RC_ASSERT(((claim != claims_.end() && claim->second == host) || desk_->is_late_of_killed));
    person.yes = host;
  }

  /// Each change as it is made: before it, etcd has what it had.
  void look_at(const LabChange& change) {
    for (const LabChange::Put& each : change.puts) {
      if (const auto id = name_in(kLabStarts, each.key)) {
        if (id->find("desk1-") != 0) continue;
        RC_ASSERT(!etcd_.keys_.contains(each.key));
        const auto& start = std::get<LabStart>(each.value);
        claims_[*id] = start.host;
        look_at_number(*id, start.number);
      }
      if (const auto id = name_in(kLabTickets, each.key)) {
        const auto* ticket = std::get_if<LabTicket>(&each.value);
        if (id->find("desk1-") != 0 || ticket == nullptr) continue;
        // No entry beside a start.
        const std::string start = key_of(kLabStarts, *id);
        const bool is_back = std::ranges::find(change.removed, start) != change.removed.end();
        RC_ASSERT((!etcd_.keys_.contains(start) || is_back));
        look_at_number(*id, ticket->number);
      }
    }
    for (const std::string& key : change.removed) look_at_removal(key, change);
  }

  void look_at_removal(const std::string& key, const LabChange& change) {
    const auto ticket = name_in(kLabTickets, key);
    const auto start = name_in(kLabStarts, key);
    // What is removed without a condition is nobody's who lives.
    if (change.conditions.empty() && etcd_.keys_.contains(key) && desk_ != nullptr) {
      if (ticket && ticket->find("desk1-") == 0) RC_ASSERT((owner_of(*ticket) == nullptr));
      if (start && start->find("desk1-") == 0) RC_ASSERT((owner_of(*start) == nullptr));
    }
    if (start) {
      // A start that was told is not taken back while its request may run it. What an agent asked
      // for that was killed since may still be made; then the start is put there again.
      if (const Person* owner = owner_of(*start)) RC_ASSERT((owner->yes.empty() || desk_->is_late_of_killed));
      claims_.erase(*start);
    }
  }

  void look_at_number(const std::string& id, std::optional<OrderNumber> number) {
    if (!is_fair_) return;
    RC_ASSERT(number);
    const auto [known, is_new] = numbers_.try_emplace(id, *number);
    RC_ASSERT((is_new || known->second == *number || owner_of(id) == nullptr));
    known->second = *number;
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
      RC_ASSERT((!ticket || ticket->find("desk1-") != 0 || value.value == lab_queue::LabValue("{")));
      RC_ASSERT(key.find("/berth/1/start/desk1-") != 0);
    }
  }

  void starts_somewhere(ClientId client) {
    const auto hosts = desk_->state.clients.at(client).entry->hosts;
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
    const LabCopy known = etcd_.as_known();
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
  std::map<std::string, OrderNumber> numbers_{};
};

}  // namespace

TEST_CASE(
    "whatever is lost, late, wiped or told again, no yes is without a start, and nothing is left behind") {
  holds_for_any("any lab", [] { AnyLab().go(); });
}

}  // namespace berth::lab_agent_test::lab_agent_random_test
