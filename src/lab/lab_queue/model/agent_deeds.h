#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/lab_queue/model/lab_agent_step.h"
#include "berth/machines/host.h"

// What any rule of the agent's step does with its clients.
namespace berth::lab_queue::lab_agent {

/// The facts of a step, and the deeds so far.
struct AgentDeeds {
  State& state;
  const StepInput& given;
  std::vector<Action> actions{};

  void act(Action action) { actions.push_back(std::move(action)); }
  void tell(ClientId id, std::string line) { act(Tell{id, std::move(line)}); }

  /// nullptr: it has ended.
  Client* client(ClientId id) const;
  /// nullptr: it has none.
  QueueEntry* entry_of(ClientId id) const;
  std::deque<ClientId> clients() const;
  bool somebody_waits() const;
  bool somebody_looks() const;

  /// `with_entry`: what the store has of it is removed.
  void dismiss(ClientId id, std::string_view why, bool with_entry);
  /// Its entry goes at once, unless that is another user's.
  void forget(ClientId id, bool with_entry);

  /// Says in the ticket of this client what its user may have of the lab at this hour, and ends a
  /// request that may never start.
  void limit(ClientId id);
  /// Why its user may not start it now. `has`: what the users have of the lab. `taken`: the same
  /// for this user, with what the user's earlier requests ask for.
  std::optional<std::string> why_over(const QueueEntry& entry, const GpusByUser& has,
                                      std::uint64_t taken) const;
};

// agent_dialogue.cpp

/// Takes a line of a client, which asks for something or answers. REQUIRES: the client has not
/// ended.
void hear(AgentDeeds& deeds, ClientId id, std::string_view line);

// agent_dialogue.cpp: requests are told of their way through the queue; people who look, of all of
// it.

/// Tells each request which hosts it may join, or which limit holds it back, and its position.
void tell_openings(AgentDeeds& deeds);
/// The request keeps its entry and lets its hosts go, so that no host holds GPUs for it.
void hold_back(AgentDeeds& deeds, ClientId id, QueueEntry& entry, const std::string& why);
/// That the store does not answer, which each request is told once.
void tell_silence(AgentDeeds& deeds, ClientId id, QueueEntry& entry);
/// That it answers again, to those who were told otherwise.
void tell_return(AgentDeeds& deeds);
/// Tells people who look, and requests whose limits are not known.
void report(AgentDeeds& deeds);
/// The queue as people who look are told of it, from the `from`-th request on.
std::vector<std::string> queue_answer(const LabOrder& order, std::size_t from);
/// When the queue is shown to people who did not ask for it.
SteadyTime next_show(const Board& board, SteadyTime now);

// What a request needs, so that the store has it as it should be and the request knows: its entry,
// its one start, and the end of a start that it has lost.

/// The store is to be changed.
struct Writes {
  lab_queue::LabChange change;
  Settles::Purpose purpose{};
};

/// The entry of a request. `order`: of the ticket that is there; 0: there is none.
lab_queue::LabChange put_ticket(const QueueEntry& entry, std::uint64_t order);
/// The change that the request needs. nullopt: it needs none now; it may have been told yes, held
/// back, or turned away instead. REQUIRES: it has an entry.
std::optional<Writes> settle(AgentDeeds& deeds, ClientId id);
/// After this was made for it. REQUIRES: it has an entry.
void has_settled(AgentDeeds& deeds, ClientId id, const Settles::Purpose& made);

}  // namespace berth::lab_queue::lab_agent
