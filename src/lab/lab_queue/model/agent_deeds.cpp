#include "berth/lab_queue/model/agent_deeds.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "berth/lab_queue/model/lab_copy.h"

namespace berth::lab_queue::lab_agent {
namespace {

/// nullopt: it is not known which apply, or none do.
std::optional<UserLimits> limits_now(const AgentDeeds& deeds, const QueueEntry& entry) {
  const auto* of = std::get_if<LimitsOf>(&entry.limits);
  if (of == nullptr) return std::nullopt;
  return limits_of(deeds.state.settings.limits, of->asker, deeds.given.hour);
}

}  // namespace

Client* AgentDeeds::client(ClientId id) const {
  const auto found = state.clients.find(id);
  return found == state.clients.end() ? nullptr : &found->second;
}

QueueEntry* AgentDeeds::entry_of(ClientId id) const {
  Client* one = client(id);
  return one != nullptr && one->entry ? &*one->entry : nullptr;
}

std::deque<ClientId> AgentDeeds::clients() const {
  std::deque<ClientId> ids;
  for (const auto& [id, each] : state.clients) ids.push_back(id);
  return ids;
}

bool AgentDeeds::somebody_waits() const {
  return std::ranges::any_of(state.clients, [](const auto& each) { return each.second.entry.has_value(); });
}

bool AgentDeeds::somebody_looks() const {
  return std::ranges::any_of(state.clients, [](const auto& each) {
    return each.second.wants_status || each.second.wants_queue.has_value();
  });
}

void AgentDeeds::dismiss(ClientId id, std::string_view why, bool with_entry) {
  tell(id, fmt::format("no {}", why));
  act(Dismiss{id});
  forget(id, with_entry);
}

void AgentDeeds::forget(ClientId id, bool with_entry) {
  const Client& one = *client(id);
  if (with_entry && one.entry) {
    const auto found = given.store.queue().find(one.entry->kept.id);
    if (!found || found->uid == one.uid) state.removals.insert(one.entry->kept.id);
  }
  state.clients.erase(id);
  state.again = true;
}

void AgentDeeds::limit(ClientId id) {
  QueueEntry* entry = entry_of(id);
  if (entry == nullptr || std::holds_alternative<Runs>(entry->stage)) return;
  const auto limits = limits_now(*this, *entry);
  if (!limits) return;
  if (const auto why = never_in_lab(*limits, entry->kept.gpus)) return dismiss(id, *why, true);
  const auto& most = limits->now.lab_gpus;
  entry->kept.most = most ? std::optional(static_cast<unsigned>(most->most)) : std::nullopt;
}

std::optional<std::string> AgentDeeds::why_over(const QueueEntry& entry, const GpusByUser& has,
                                                std::uint64_t taken) const {
  const auto limits = limits_now(*this, entry);
  if (!limits) return std::nullopt;
  const auto found = has.in_all.find(entry.kept.uid);
  const std::uint64_t held = found == has.in_all.end() ? 0 : found->second;
  return over_lab_limit(*limits, entry.kept.gpus, held, taken - std::min(taken, held));
}

namespace {

using lab_queue::key_of;
using lab_queue::LabChange;
using lab_queue::LabCondition;

using Need = std::optional<Writes>;

std::string ticket_key_of(const QueueEntry& entry) {
  return key_of(lab_queue::kLabTickets, entry.kept.id);
}
std::string start_key_of(const QueueEntry& entry) {
  return key_of(lab_queue::kLabStarts, entry.kept.id);
}

void yes(AgentDeeds& deeds, ClientId id, const std::string& host) {
  deeds.tell(id, "yes " + host);
  deeds.entry_of(id)->stage = Runs{host};
}

/// Each change of the store has the condition that the keys are as the agent knows them: its copy
/// may be a moment old.
class NeedRules {
 public:
  NeedRules(AgentDeeds& deeds, ClientId id)
      : deeds_(deeds),
        id_(id),
        one_(*deeds.client(id)),
        entry_(*one_.entry),
        settings_(deeds.state.settings),
        store_(deeds.given.store),
        found_(store_.queue().find(entry_.kept.id)),
        start_(store_.start_of(entry_.kept.id)) {}

  Need need() && {
    give_number(entry_.kept);
    if (found_ && found_->uid != one_.uid) return turn_away("another user has an entry of this name", false);
    if (!found_ && start_ != nullptr && entry_.has_lost(*start_, one_.pid))
      return Writes{take_back(), Settles::TakesBack{start_->host}};
    if (const auto* asks = std::get_if<Asks>(&entry_.stage)) return start_on(asks->host);
    // The command runs. That stays true if the store was wiped or set back.
    if (const auto* runs = std::get_if<Runs>(&entry_.stage)) {
      if (start_ == nullptr) return Writes{put_start_again(runs->host, has_lab_limit(settings_.limits))};
      return runs->asks_again ? answer(runs->host) : std::nullopt;
    }
    if (!found_) return start_ == nullptr ? put() : std::nullopt;
    const LabTicket wanted = entry_.ticket();
    const bool is_as_wanted = found_->hosts == wanted.hosts && found_->joined == wanted.joined &&
                              found_->most == wanted.most && found_->origin == wanted.origin &&
                              found_->awaited == wanted.awaited;
    return is_as_wanted ? std::nullopt : put();
  }

 private:
  /// A request gets its number once. It keeps the number of its ticket or its start, also if
  /// the store was wiped.
  void give_number(LabTicket& wanted) const {
    if (found_)
      wanted.number = found_->number;
    else if (start_ != nullptr)
      wanted.number = start_->number;
    else if (!wanted.number && has_numbers(settings_.order))
      wanted.number = next_number(settings_.order, wanted.uid, store_.numbers());
  }

  /// The one start.
  Need start_on(const std::string& host) {
    // It has no entry: it gets one first, or it was started already.
    if (!found_) return start_ == nullptr ? put() : answer(host);
    if (entry_.is_closing(host)) return not_now();  // it is about to let this host go
    const auto why = entry_.kept.most ? deeds_.why_over(entry_, store_.gpus_by_user(), 0) : std::nullopt;
    if (!why) return Writes{put_start(host), Settles::Starts{host}};
    hold_back(deeds_, id_, entry_, *why);
    return not_now();
  }

  Need not_now() {
    entry_.stage = WaitsForHosts{};
    return std::nullopt;
  }

  /// A start that was answered to nobody is answered again, to the same process for the same host.
  Need answer(const std::string& host) {
    const bool is_own = start_->pid == one_.pid;
    // Another's start that is there stays. Its own ends with the connection, as always.
    if (start_->host != host || !is_own) return turn_away("this request was started already", is_own);
    yes(deeds_, id_, host);
    return std::nullopt;
  }

  /// `with_entry`: what the store has of it is removed. It is gone after this.
  Need turn_away(std::string_view why, bool with_entry) {
    deeds_.dismiss(id_, why, with_entry);
    return std::nullopt;
  }

  Need put() const { return Writes{put_ticket(entry_, order())}; }

  /// If the user has a limit, nobody else has started one of the user's since the agent added up
  /// what the user has. An agent on another machine may do so at this moment.
  LabChange put_start(const std::string& host) const {
    LabChange put = put_start_again(host, entry_.kept.most.has_value());
    if (!entry_.kept.most) return put;
    const std::uint64_t seen = store_.revisions(user_key()).changed;
    put.conditions.push_back({user_key(), seen, LabCondition::Of::changed});
    return put;
  }

  /// Of a command that runs, where the store has lost it. `counts`: users have limits. Then an
  /// agent that is adding up what this user has at this moment has to start over.
  LabChange put_start_again(const std::string& host, bool counts) const {
    LabChange put{.conditions = {{ticket_key(), order()}, {start_key(), 0}},
                  .puts = {{start_key(), entry_.start_on(host, one_.pid)}}};
    if (order() != 0) put.removed = {ticket_key()};
    if (counts) put.puts.push_back({user_key(), entry_.kept.id});
    return put;
  }

  /// A start was made for a process that has lost that host before its command could start there.
  /// So the request gets an entry again, and keeps its position on the hosts in whose queues it
  /// waits.
  LabChange take_back() const {
    return {.conditions = {{start_key(), store_.revisions(start_key()).created}, {ticket_key(), 0}},
            .puts = {{ticket_key(), entry_.ticket()}},
            .removed = {start_key()}};
  }

  /// Of its ticket; 0: it has none.
  std::uint64_t order() const { return found_ ? found_->order : 0; }
  std::string ticket_key() const { return ticket_key_of(entry_); }
  std::string start_key() const { return start_key_of(entry_); }
  std::string user_key() const { return key_of(lab_queue::kLabUsers, std::to_string(entry_.kept.uid)); }

  AgentDeeds& deeds_;
  ClientId id_;
  Client& one_;
  QueueEntry& entry_;
  const Settings& settings_;
  const lab_queue::LabCopy& store_;
  std::optional<LabTicket> found_;
  const LabStart* start_;
};

}  // namespace

LabChange put_ticket(const QueueEntry& entry, std::uint64_t order) {
  LabChange put{.conditions = {{ticket_key_of(entry), order}}};
  if (order == 0) put.conditions.push_back({start_key_of(entry), 0});
  put.puts.push_back({ticket_key_of(entry), entry.ticket()});
  return put;
}

std::optional<Writes> settle(AgentDeeds& deeds, ClientId id) {
  return NeedRules(deeds, id).need();
}

void has_settled(AgentDeeds& deeds, ClientId id, const Settles::Purpose& made) {
  QueueEntry& entry = *deeds.entry_of(id);
  if (const auto* starts = std::get_if<Settles::Starts>(&made)) {
    // If the process has let the host go while the store was asked, the next round takes the start
    // back.
    const auto* asks = std::get_if<Asks>(&entry.stage);
    if (asks != nullptr && asks->host == starts->host) yes(deeds, id, starts->host);
  } else if (const auto* back = std::get_if<Settles::TakesBack>(&made)) {
    if (NamedHost* host = entry.host(back->host)) host->is_let_go = std::holds_alternative<Left>(host->how);
  }
}

}  // namespace berth::lab_queue::lab_agent
