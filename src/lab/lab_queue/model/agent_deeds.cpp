#include "berth/lab_queue/model/agent_deeds.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

namespace berth::lab_agent {
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

}  // namespace berth::lab_agent
