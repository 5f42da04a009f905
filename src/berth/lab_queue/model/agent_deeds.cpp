#include "berth/lab_queue/model/agent_deeds.h"

#include <algorithm>

#include <fmt/format.h>

namespace berth::lab_agent {

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

}  // namespace berth::lab_agent
