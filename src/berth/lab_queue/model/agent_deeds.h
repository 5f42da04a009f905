#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/lab_queue/model/lab_agent.h"

namespace berth::lab_agent {

/// The facts of a step, and the deeds so far: what any rule of the agent does with a client.
struct AgentDeeds {
  State& state;
  const Given& given;
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

  /// `with_place`: what the store has of it is removed.
  void dismiss(ClientId id, std::string_view why, bool with_entry);
  /// Its entry in the store goes at once, unless that is another user's.
  void forget(ClientId id, bool with_entry);
};

}  // namespace berth::lab_agent
