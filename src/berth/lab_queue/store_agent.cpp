// A single coroutine talks to the store, one question after another: it writes what is wanted, and
// tells those who wait. Its copy of the store may be a moment old, so each change has a condition.
// As in http_server.cpp, a coroutine is given variables, never temporaries.
#include "berth/lab_queue/store_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/printable.h"
#include "berth/base/record.h"
#include "berth/lab_queue/join_patience.h"
#include "berth/lab_queue/lab_connections.h"
#include "berth/lab_queue/lab_queue_reporter.h"
#include "berth/lab_queue/lab_store.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/lab_queue/store_heartbeat.h"
#include "berth/lab_queue/store_limits.h"
#include "berth/lab_queue/store_reading.h"
#include "berth/net/keep_going.h"
#include "berth/request/lab_host.h"
#include "berth/sys/file.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;
using Instant = std::chrono::steady_clock::time_point;
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
bool is_mark(std::string_view text) {
  return text.size() >= 16 && text.size() <= 64 && std::ranges::all_of(text, [](char each) {
           return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f');
         });
}

}  // namespace

class StoreAgent::Body : public std::enable_shared_from_this<Body> {
 public:
  Body(asio::io_context& loop, std::function<void(const std::string&)> log)
      : loop_(loop), log_(std::move(log)), bell_(loop) {}

  void show_queue_to(LabQueueReporter::Show show) { show_ = std::move(show); }

  Result<void> start(StoreAccess access) {
    access_ = std::move(access);
    limits_ = std::make_shared<StoreLimits>(loop_, access_.limits);
    std::function<void()> rung = [self = weak_from_this()] {
      if (const auto body = self.lock()) body->hear_news();
    };
    store_ = std::make_shared<StoreReading>(loop_, access_, std::move(rung));
    heartbeat_ = std::make_unique<StoreHeartbeat>(store_, access_.name, log_);
    connections_ = std::make_shared<LabConnections>(
        loop_,
        [self = weak_from_this()](const Connection& connection, const std::vector<std::string>& words) {
          if (const auto body = self.lock()) body->hear(connection, words);
        },
        [self = weak_from_this()](const Connection& connection) {
          if (const auto body = self.lock()) body->forget(connection);
        });
    reporter_ = std::make_unique<LabQueueReporter>(store_, connections_, access_.name, std::move(show_));
    BERTH_DO(connections_->admit_at(access_.socket));
    store_->start();
    net::keep_going(loop_, shared_from_this(), rounds);
    return {};
  }

 private:
  // --- rounds

  static net::Task<> rounds(std::shared_ptr<Body> self) {
    while (true) {
      self->is_rung_ = false;
      const auto again = co_await self->one_round();
      if (again) {
        self->is_found();
      } else {
        self->is_lost(again.error().message);
      }
      self->reporter_->tell(self->fault_, [&] { return self->order_now(); });
      if (again && (*again || self->is_rung_)) continue;
      self->bell_.expires_at(self->next_round(again.has_value()));
      co_await self->bell_.async_wait(net::kAwait);
    }
  }

  Instant next_round(bool is_well) const {
    const Instant now = std::chrono::steady_clock::now();
    if (!is_well || !heartbeat_->is_there()) return now + kAfterFault;
    Instant next = std::min(heartbeat_->renewal(), now + (somebody_waits() ? kRound : kIdleRound));
    if (!has_swept_) next = std::min(next, sweep_at_);
    if (reporter_->shows()) next = std::min(next, reporter_->next_show());
    next = std::min(next, patience_.next(connections_->all()));
    return std::max(next, now);
  }

  bool somebody_waits() const {
    return std::ranges::any_of(connections_->all(), [](const Connection& each) { return each->waits(); });
  }

  void ring() {
    is_rung_ = true;
    if (fault_.empty()) bell_.cancel();
  }

  void hear_news() {
    const bool is_to_show = reporter_->is_first_news();
    if (is_to_show || somebody_waits()) ring();
  }

  void is_found() {
    if (!fault_.empty()) log_(fmt::format("the store at {} answers again", url_of(store_->member())));
    fault_.clear();
    for (const Connection& each : connections_->all())
      if (std::exchange(each->told_silent, false)) send(each, "heard");
  }

  void is_lost(const std::string& why) {
    const std::string url = url_of(store_->member());
    if (fault_.empty())
      log_(fmt::format("the store at {} does not answer, and all keep their places: {}", url, why));
    fault_ = fmt::format("{}: {}", url, why);
    for (const Connection& each : connections_->all())
      if (each->waits() && !std::exchange(each->told_silent, true)) send(each, "silent " + printable(fault_));
    store_->use_next_member();
  }

  /// True: something was changed, so that what was read is old.
  net::Task<Result<bool>> one_round() {
    BERTH_CO_DO(co_await heartbeat_->keep());
    BERTH_CO_DO(co_await take_away());
    const bool somebody_looks =
        std::ranges::any_of(connections_->all(), &LabConnection::only_looks, &Connection::operator*);
    const Instant now = std::chrono::steady_clock::now();
    const bool has_to_sweep = !has_swept_ && now >= sweep_at_;
    if (somebody_looks || has_to_sweep || reporter_->shows() || somebody_waits()) {
      needed_ = now;
    } else {
      if (now > needed_ + kKeptReading) store_->forget();
      co_return false;
    }
    limit_all();
    // The fair number of a new request depends on the numbers of the others.
    if (store_->is_unread() && !traits_of(access_.order).numbers) {
      BERTH_CO_DO(co_await put_unread());
    }
    BERTH_CO_LET(const auto current, co_await store_->be_current(somebody_looks));
    if (!current) co_return true;
    // If the store was wiped or set back, it has lost the heartbeat of this agent too.
    if (!store_->now().alive().contains(access_.name)) heartbeat_->is_lost();
    sweep();
    bool changed = !removals_.empty();
    const std::vector<Connection> connections = connections_->all();
    for (const Connection& each : connections) {
      if (!is_ready(*each)) continue;
      patience_.pass_over(*each, std::chrono::steady_clock::now());
      BERTH_CO_LET(const auto done, co_await settle(each));
      changed = changed || done;
    }
    tell_all();
    co_return changed;
  }

  /// The places of those who have gone.
  net::Task<Result<void>> take_away() {
    while (!removals_.empty()) {
      const std::string id = *removals_.begin();
      StoreChange removal;
      removal.removed = {key_of(kLabTickets, id), key_of(kLabStarts, id)};
      BERTH_CO_DO(co_await store_->change(std::move(removal)));
      removals_.erase(id);
    }
    co_return Result<void>();
  }

  /// Tickets that a killed agent left here, or that were written late.
  void sweep() {
    const Instant now = std::chrono::steady_clock::now();
    if (now < began_ + kComingBack) return;
    has_swept_ = has_swept_ || now >= sweep_at_;
    const auto is_left = [&](const std::string& id) {
      return std::ranges::none_of(connections_->all(), [&](const Connection& each) {
        return each->waits() && each->wanted.id == id;
      });
    };
    for (const std::string& id : store_->now().queue().of_home(access_.name))
      if (is_left(id)) removals_.insert(id);
    for (const auto& [id, text] : store_->now().starts())
      if (home_of(id) == access_.name && is_left(id)) removals_.insert(id);
  }

  // --- the limits of users over the lab

  bool is_ready(const LabConnection& connection) const {
    return connection.waits() && limits_->are_known_for(connection);
  }

  void limit_all() {
    const std::vector<Connection> connections = connections_->all();
    for (const Connection& each : connections)
      if (each->waits())
        if (const auto why = limits_->apply_to(*each)) dismiss(each, *why);
  }

  /// The request keeps its place and lets its hosts go, so that no host holds GPUs for it.
  void hold_back(const Connection& connection, const std::string& why) {
    const Instant now = std::chrono::steady_clock::now();
    for (const auto& [host, since] : connection->opened)
      if (connection->closing.emplace(host, now).second) send(connection, "close " + host);
    tell_limit(connection, why);
  }

  void tell_limit(const Connection& connection, const std::string& why) {
    if (std::exchange(connection->told_limit, why) != why) send(connection, "limit " + printable(why));
  }

  void learn_limits(const Connection& connection) {
    std::function<void()> told_late = [self = shared_from_this(), connection] {
      self->tell_limit(connection,
                       "the name service of this machine has not said yet which limits apply to you");
    };
    limits_->learn(connection, std::move(told_late), [self = shared_from_this()] { self->ring(); });
  }

  /// Writes new requests before all keys are read. Then the reading has all requests that are
  /// earlier, and need not wait for the watch.
  net::Task<Result<void>> put_unread() {
    const std::vector<Connection> connections = connections_->all();
    for (const Connection& each : connections) {
      if (!is_ready(*each) || !each->start_on.empty() || !each->told_yes.empty()) continue;
      BERTH_CO_DO(co_await put_ticket(each, 0));
    }
    co_return Result<void>();
  }

  /// `order`: of the one that is there; 0: it is to be a new one.
  net::Task<Result<void>> put_ticket(Connection connection, std::uint64_t order) {
    const LabTicket& wanted = connection->wanted;
    StoreChange put;
    put.conditions = {{key_of(kLabTickets, wanted.id), order}};
    if (order == 0) put.conditions.push_back({key_of(kLabStarts, wanted.id), 0});
    put.puts.push_back({key_of(kLabTickets, wanted.id), lab_ticket_json(wanted)});
    BERTH_CO_DO(co_await change_for(std::move(put)));
    co_return Result<void>();
  }

  /// Makes a change for a connection. The connection may end meanwhile.
  net::Task<Result<ChangeAnswer>> change_for(StoreChange put) {
    const auto done = co_await store_->change(std::move(put));
    if (!done) {
      // The store may still make the change later, when the connection has ended and its entries
      // were removed.
      sweep_at_ = std::max(sweep_at_, std::chrono::steady_clock::now() + kLateChange);
      has_swept_ = false;
    }
    co_return done;
  }

  /// A request gets its fair number once. It keeps the number of its ticket or its start, also if
  /// the store was wiped.
  void give_fair_number(LabTicket& wanted, const std::optional<LabTicket>& found) const {
    const auto started = store_->now().starts().find(wanted.id);
    if (found)
      wanted.fair_number = found->fair_number;
    else if (started != store_->now().starts().end())
      wanted.fair_number = started->second.fair_number;
    else if (!wanted.fair_number && traits_of(access_.order).numbers)
      wanted.fair_number = next_fair_number(wanted.uid, store_->now().fair_numbers());
  }

  /// Puts there what this one wants. True: the store has changed.
  net::Task<Result<bool>> settle(Connection connection) {
    LabTicket& wanted = connection->wanted;
    const auto found = store_->now().queue().find(wanted.id);
    const bool is_there = found.has_value();
    give_fair_number(wanted, found);
    const auto started = store_->now().starts().find(wanted.id);
    const bool has_started = !is_there && started != store_->now().starts().end();
    if (is_there && found->uid != wanted.uid) {
      dismiss(connection, "another user has a place of this name");
      co_return false;
    }
    if (has_started && has_lost_start(*connection, started->second)) {
      const std::string host = started->second.host;
      co_return co_await take_back(connection, host);
    }
    if (!connection->start_on.empty()) co_return co_await begin(connection, is_there ? found->order : 0);
    // The command runs. That stays true if the store was wiped or set back.
    if (!connection->told_yes.empty()) {
      if (started != store_->now().starts().end()) co_return false;
      co_return co_await put_start_again(connection, is_there ? found->order : 0);
    }
    if (is_there && found->hosts == wanted.hosts && found->joined == wanted.joined &&
        found->most == wanted.most && found->origin == wanted.origin)
      co_return false;
    if (has_started) co_return false;
    BERTH_CO_DO(co_await put_ticket(connection, is_there ? found->order : 0));
    co_return true;
  }

  /// `order`: of its ticket; 0: it has none.
  net::Task<Result<bool>> put_start_again(Connection connection, std::uint64_t order) {
    const std::string ticket = key_of(kLabTickets, connection->wanted.id);
    const std::string start = key_of(kLabStarts, connection->wanted.id);
    StoreChange put;
    put.conditions = {{ticket, order}, {start, 0}};
    put.puts.push_back({start, lab_start_json(connection->start_at(connection->told_yes))});
    if (order != 0) put.removed = {ticket};
    // If an agent is adding up what this user has at this moment, it has to start over.
    if (limits_->any())
      put.puts.push_back({key_of(kLabUsers, std::to_string(connection->wanted.uid)), connection->wanted.id});
    BERTH_CO_DO(co_await change_for(std::move(put)));
    co_return true;
  }

  /// A start was made for this process, but the process lost that host before the command could
  /// start there. So the request gets a place again, and keeps its position on the hosts in whose
  /// queues it waits.
  bool has_lost_start(const LabConnection& connection, const LabStart& start) const {
    return start.pid == connection.who.pid && connection.told_yes.empty() &&
           connection.start_on != start.host &&
           (connection.given_back.contains(start.host) || !is_asked(connection, start.host));
  }

  /// Whether the request has named this host, and has not left it.
  static bool is_asked(const LabConnection& connection, std::string_view host) {
    return std::ranges::find(connection.asked, host) != connection.asked.end();
  }

  net::Task<Result<bool>> take_back(Connection connection, std::string host) {
    const std::string start = key_of(kLabStarts, connection->wanted.id);
    const std::string ticket = key_of(kLabTickets, connection->wanted.id);
    StoreChange put;
    put.conditions = {{start, store_->now().revisions(start).created}, {ticket, 0}};
    put.puts.push_back({ticket, lab_ticket_json(connection->wanted)});
    put.removed = {start};
    BERTH_CO_LET(const auto done, co_await store_->change(std::move(put)));
    if (done.made) connection->given_back.erase(host);
    co_return true;
  }

  /// The one start. What was answered to nobody is answered again, to the same process for the same
  /// host.
  net::Task<Result<bool>> begin(Connection connection, std::uint64_t order) {
    const std::string id = connection->wanted.id;
    const std::string host = connection->start_on;
    if (!connection->told_yes.empty()) {
      answer_start(connection, host, host == connection->told_yes);
      co_return false;
    }
    if (order == 0) {
      // It has no place: it gets one first, or it was started already.
      const auto started = store_->now().starts().find(id);
      if (started != store_->now().starts().end()) {
        answer_start(connection, host,
                     started->second.host == host && started->second.pid == connection->who.pid);
        co_return false;
      }
      BERTH_CO_DO(co_await put_ticket(connection, 0));
      co_return true;
    }
    if (connection->closing.contains(host)) {
      connection->start_on.clear();  // it is about to let this host go
      co_return false;
    }
    const auto why = connection->wanted.most ? limits_->why_over(*connection, store_->now().gpus_by_user(), 0)
                                             : std::nullopt;
    if (why) {
      connection->start_on.clear();
      hold_back(connection, *why);
      co_return false;
    }
    StoreChange put;
    put.conditions = {{key_of(kLabTickets, id), order}, {key_of(kLabStarts, id), 0}};
    put.puts.push_back({key_of(kLabStarts, id), lab_start_json(connection->start_at(host))});
    put.removed = {key_of(kLabTickets, id)};
    if (connection->wanted.most) {
      // An agent on another machine may start one of the same user at this moment.
      const std::string user = key_of(kLabUsers, std::to_string(connection->wanted.uid));
      const std::uint64_t seen = store_->now().revisions(user).changed;
      put.conditions.push_back({user, seen, StoreCondition::Of::changed});
      put.puts.push_back({user, id});
    }
    BERTH_CO_LET(const auto done, co_await store_->change(std::move(put)));
    // If the process has let the host go while the store was asked, the next round takes the start
    // back.
    if (done.made && connection->start_on == host) answer_start(connection, host, true);
    co_return true;
  }

  void answer_start(const Connection& connection, const std::string& host, bool yes) {
    if (!yes) {
      connection->wanted.id.clear();  // the start that is there stays
      return dismiss(connection, "this request was started already");
    }
    connection->start_on.clear();
    connection->told_yes = host;
    send(connection, "yes " + host);
  }

  void tell_all() {
    const Instant now = std::chrono::steady_clock::now();
    const LabTickets& queue = store_->now().queue();
    const auto absent = absent_homes(now);
    const GpusByUser has = who_has_what();
    LabOpenings openings(queue, absent, has);
    for (const Connection& each : connections_->all()) {
      if (!each->waits()) continue;
      const auto ticket = queue.find(each->wanted.id);
      // The agent knows its own ticket at once. The watch may still have to report earlier tickets.
      if (!ticket || ticket->order > store_->now().revision()) continue;
      const std::size_t position = openings.position(each->wanted.id);
      std::erase_if(each->closing, [&](const auto& host) { return now - host.second > kClosing; });
      if (const auto taken = openings.taken_of_limit(each->wanted.id)) {
        if (const auto why = limits_->why_over(*each, has, *taken)) hold_back(each, *why);
      } else {
        tell_limit(each, "");
      }
      for (const std::string& host : openings.hosts_to_join(each->wanted.id))
        if (!each->closing.contains(host) && each->opened.emplace(host, now).second) {
          send(each, "open " + host);
          send(each, "answer " + host);
        }
      // The place is sent last. So a request that does not wait knows that no other host is open to
      // it now.
      if (std::exchange(each->told_position, position) != position)
        send(each, fmt::format("place {}", position));
    }
  }

  /// Empty if the order does not depend on it.
  GpusByUser who_has_what() const {
    return store_->now().queue().asks_who_has_what() ? store_->now().gpus_by_user() : GpusByUser{};
  }

  std::set<std::string, std::less<>> absent_homes(Instant now) {
    std::set<std::string, std::less<>> absent;
    for (const auto& [home, tickets] : store_->now().queue().homes()) {
      if (store_->now().alive().contains(home)) {
        silent_since_.erase(home);
      } else if (now - silent_since_.try_emplace(home, now).first->second > kSilence) {
        absent.insert(home);
      }
    }
    return absent;
  }

  // --- those who wait

  void hear(const Connection& connection, const std::vector<std::string>& words) {
    const std::string word = words.empty() ? "" : words[0];
    const std::string name = words.size() > 1 ? words[1] : "";
    LabTicket& wanted = connection->wanted;
    const bool is_of_it = is_asked(*connection, name);
    if (word == "status") {
      connection->wants_status = true;
    } else if (word == "line" && number_from_text<std::size_t>(name)) {
      connection->wants_queue = number_from_text<std::size_t>(name);
    } else if (word == "wait" && words.size() >= 4 && words.size() <= 6 && wanted.id.empty() &&
               is_mark(name)) {
      // An older Berth does not say how many GPUs it wants. If there are lanes, its lane says so.
      enter_lab_queue(connection, name, words[2], words.size() == 4 ? words[2] : words[4],
                      split_words(words[3], ','));
      if (words.size() == 6 && is_asked(*connection, words[5])) connection->told_yes = words[5];
    } else if (word == "here" && is_of_it) {
      connection->answered.insert(name);
      want_again(wanted, name);
    } else if (word == "joined" && is_of_it) {
      want_again(wanted, name);
      if (std::ranges::find(wanted.joined, name) == wanted.joined.end()) wanted.joined.push_back(name);
      connection->opened.try_emplace(name, std::chrono::steady_clock::now());
    } else if (word == "closed" && is_of_it) {
      let_go(*connection, name);
      want_again(wanted, name);
      connection->given_back.insert(name);
      connection->opened.erase(name);
      connection->answered.erase(name);
      connection->closing.erase(name);
    } else if (word == "left" && is_of_it) {
      let_go(*connection, name);
      std::erase(connection->asked, name);
      std::erase(wanted.hosts, name);
    } else if (word == "start" && is_of_it) {
      connection->start_on = name;
    } else {
      return dismiss(connection, "it was asked what this version does not know");
    }
    ring();
  }

  /// The request may have been passed over on this host, so it asks for the host again.
  static void want_again(LabTicket& wanted, const std::string& host) {
    if (std::ranges::find(wanted.hosts, host) == wanted.hosts.end()) wanted.hosts.push_back(host);
  }

  /// The command has not started on this host: the yes for it was not passed on.
  static void let_go(LabConnection& connection, const std::string& host) {
    std::erase(connection.wanted.joined, host);
    if (connection.start_on == host) connection.start_on.clear();
    if (connection.told_yes == host) connection.told_yes.clear();
  }

  void enter_lab_queue(const Connection& connection, const std::string& mark, const std::string& lane_text,
                       const std::string& gpus_text, std::vector<std::string> hosts) {
    const auto lane = number_from_text<unsigned>(lane_text);
    const auto gpus = number_from_text<unsigned>(gpus_text);
    if (!lane || !gpus) return dismiss(connection, "this is no number of GPUs");
    const std::string id = id_of(access_.name, mark);
    if (hosts.size() > kMostHostsOfRequest)
      return dismiss(connection,
                     fmt::format("a request may name {} hosts at most; name fewer with --hosts or --host",
                                 kMostHostsOfRequest));
    if (hosts.empty() ||
        !std::ranges::all_of(hosts, [](const auto& each) { return check_host_name(each).has_value(); }))
      return dismiss(connection, "these are no hosts");
    if (std::ranges::any_of(connections_->all(),
                            [&](const Connection& each) { return each->waits() && each->wanted.id == id; }))
      return dismiss(connection, "this request has its place on another connection");
    connection->asked = hosts;
    connection->wanted = {.id = id,
                          .home = access_.name,
                          .uid = connection->who.uid,
                          .lane = *lane,
                          .gpus = std::max(*gpus, 1U),
                          .origin = origin_of(sys::host_name(), connection->who.pid),
                          .hosts = std::move(hosts),
                          .joined = {}};
    removals_.erase(id);
    learn_limits(connection);
    if (!fault_.empty() && !std::exchange(connection->told_silent, true))
      send(connection, "silent " + printable(fault_));
  }

  LabOrder order_now() {
    const auto absent = absent_homes(std::chrono::steady_clock::now());
    return LabOpenings(store_->now().queue(), absent, who_has_what()).order();
  }

  void dismiss(const Connection& connection, std::string_view why) {
    send(connection, fmt::format("no {}", why));
    connections_->dismiss(connection);
  }

  /// Its place goes at once.
  void forget(const Connection& connection) {
    if (is_owner(*connection)) removals_.insert(connection->wanted.id);
    ring();
  }

  /// False for a connection that was refused because the place belongs to another user.
  bool is_owner(const LabConnection& connection) const {
    if (connection.wanted.id.empty()) return false;
    const auto found = store_->now().queue().find(connection.wanted.id);
    return !found || found->uid == connection.wanted.uid;
  }

  void send(const Connection& connection, std::string_view words) { connections_->send(connection, words); }

  asio::io_context& loop_;
  std::function<void(const std::string&)> log_;
  StoreAccess access_;
  std::shared_ptr<StoreLimits> limits_;
  std::shared_ptr<LabConnections> connections_;
  net::Timer bell_;  ///< rings for a round
  bool is_rung_ = false;
  std::shared_ptr<StoreReading> store_;
  std::unique_ptr<StoreHeartbeat> heartbeat_;
  JoinPatience patience_;
  LabQueueReporter::Show show_;
  std::unique_ptr<LabQueueReporter> reporter_;
  std::string fault_;                            ///< why the store does not answer; "": it does
  Instant needed_{};                             ///< what the store has, by somebody here
  std::set<std::string, std::less<>> removals_;  ///< ids of tickets whose waiters have gone
  std::map<std::string, Instant, std::less<>> silent_since_;
  bool has_swept_ = false;  ///< once is enough where nobody waits
  Instant began_ = std::chrono::steady_clock::now();
  Instant sweep_at_ = began_ + kComingBack;
};

StoreAgent::StoreAgent(asio::io_context& loop, std::function<void(const std::string&)> log)
    : body_(std::make_shared<Body>(loop, std::move(log))) {}
StoreAgent::~StoreAgent() = default;

void StoreAgent::show_queue_to(std::function<void(std::vector<LabStanding>)> show) {
  body_->show_queue_to(std::move(show));
}

Result<void> StoreAgent::start(StoreAccess access) {
  return body_->start(std::move(access));
}

}  // namespace berth::lab_queue
