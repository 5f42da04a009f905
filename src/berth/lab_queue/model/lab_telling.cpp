#include "berth/lab_queue/model/lab_telling.h"

#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/lab_queue/model/lab_limits.h"
#include "berth/lab_queue/model/lab_words.h"

namespace berth::lab_agent {
namespace {

using namespace std::chrono_literals;
using Homes = std::set<std::string, std::less<>>;

/// A home from which nobody has heard for so long is passed over. It is counted here: the store has
/// no clock.
constexpr auto kSilence = 30s;
/// A client that does not answer `close` within this time runs an older Berth, which does not know
/// the word.
constexpr auto kClosing = 10s;
constexpr auto kBetweenShows = 1s;
/// Which requests are skipped depends on the time as well.
constexpr auto kWithoutNews = 5s;

Homes absent_homes(AgentDeeds& deeds) {
  auto& silent_since = deeds.state.silent_since;
  const Moment now = deeds.given.now;
  const auto& homes = deeds.given.store.queue().homes();
  const auto& alive = deeds.given.store.alive();
  // Also where the last ticket went: if such a home is silent once more, it is silent from then on.
  std::erase_if(silent_since,
                [&](const auto& each) { return alive.contains(each.first) || !homes.contains(each.first); });
  Homes absent;
  for (const auto& [home, tickets] : homes)
    if (!alive.contains(home) && now - silent_since.try_emplace(home, now).first->second > kSilence)
      absent.insert(home);
  return absent;
}

/// Empty if the order does not depend on it.
GpusByUser who_has_what(const lab_queue::LabCopy& store) {
  return store.queue().asks_who_has_what() ? store.gpus_by_user() : GpusByUser{};
}

LabOrder order_now(AgentDeeds& deeds) {
  const lab_queue::LabCopy& store = deeds.given.store;
  const Homes absent = absent_homes(deeds);
  return LabOpenings(store.queue(), absent, who_has_what(store)).order();
}

void tell_limit(AgentDeeds& deeds, ClientId id, QueueEntry& entry, const std::string& why) {
  if (std::exchange(entry.told.limit, why) != why) deeds.tell(id, "limit " + printable(why));
}

void tell_openings_to(AgentDeeds& deeds, ClientId id, QueueEntry& entry, LabOpenings& openings,
                      const GpusByUser& has) {
  const Moment now = deeds.given.now;
  for (NamedHost& each : entry.hosts)
    if (auto* opened = std::get_if<Opened>(&each.how);
        opened != nullptr && opened->closing && now - *opened->closing > kClosing)
      opened->closing.reset();
  if (const auto taken = openings.taken_of_limit(entry.kept.id)) {
    if (const auto why = why_over(entry, deeds.state.settings, deeds.given, has, *taken))
      hold_back(deeds, id, entry, *why);
  } else {
    tell_limit(deeds, id, entry, "");
  }
  for (const std::string& name : openings.hosts_to_join(entry.kept.id)) {
    NamedHost* host = entry.host(name);
    if (host == nullptr || !std::holds_alternative<Shut>(host->how)) continue;
    host->how = Opened{.since = now};
    deeds.tell(id, "open " + name);
    deeds.tell(id, "answer " + name);
  }
  // The position is sent last. So a request that does not wait knows that no other host is open to
  // it now.
  const std::size_t position = openings.position(entry.kept.id);
  if (std::exchange(entry.told.position, position) != position)
    deeds.tell(id, fmt::format("place {}", position));
}

/// Answers a client that looks.
void answer_look(AgentDeeds& deeds, ClientId id, Client& one, bool has_queue) {
  const auto tell_lines = [&](const std::vector<std::string>& lines) {
    for (const std::string& each : lines) deeds.tell(id, each);
  };
  const State& state = deeds.state;
  const Given& given = deeds.given;
  if (std::exchange(one.wants_status, false))
    tell_lines(status_answer(given.url, state.settings.name, state.fault, given.store));
  if (!one.wants_queue || !has_queue) return;
  const std::size_t from = *std::exchange(one.wants_queue, std::nullopt);
  if (state.fault.empty())
    tell_lines(queue_answer(order_now(deeds), from));
  else
    deeds.tell(id, "silent " + printable(state.fault));
  deeds.tell(id, "end");
}

void show(AgentDeeds& deeds, Board& board) {
  board.shown_at = deeds.given.now;
  board.has_news = false;
  std::vector<LabStanding> queue = order_now(deeds).standing;
  if (queue.size() > kMostStanding) queue.resize(kMostStanding);
  for (LabStanding& each : queue) each.origin = shown_origin(each);
  if (std::exchange(board.shown, queue) != queue) deeds.act(Show{std::move(queue)});
}

}  // namespace

void tell_openings(AgentDeeds& deeds) {
  const lab_queue::LabCopy& store = deeds.given.store;
  const Homes absent = absent_homes(deeds);
  const GpusByUser has = who_has_what(store);
  LabOpenings openings(store.queue(), absent, has);
  for (auto& [id, each] : deeds.state.clients) {
    if (!each.entry) continue;
    const auto ticket = store.queue().find(each.entry->kept.id);
    // The agent knows its own ticket at once. The watch may still have to report earlier tickets.
    if (!ticket || ticket->order > store.revision()) continue;
    tell_openings_to(deeds, id, *each.entry, openings, has);
  }
}

void hold_back(AgentDeeds& deeds, ClientId id, QueueEntry& entry, const std::string& why) {
  for (NamedHost& each : entry.hosts) {
    auto* opened = std::get_if<Opened>(&each.how);
    if (opened == nullptr || opened->closing) continue;
    opened->closing = deeds.given.now;
    deeds.tell(id, "close " + each.name);
  }
  tell_limit(deeds, id, entry, why);
}

void tell_silence(AgentDeeds& deeds, ClientId id, QueueEntry& entry) {
  if (!std::exchange(entry.told.is_silent, true)) deeds.tell(id, "silent " + printable(deeds.state.fault));
}

void tell_return(AgentDeeds& deeds) {
  for (auto& [id, each] : deeds.state.clients)
    if (each.entry && std::exchange(each.entry->told.is_silent, false)) deeds.tell(id, "heard");
}

void report(AgentDeeds& deeds) {
  State& state = deeds.state;
  const Moment now = deeds.given.now;
  // Before that, a part of it has been read so far.
  const bool has_queue = !state.fault.empty() || deeds.given.store.is_whole();
  for (auto& [id, each] : state.clients) {
    if (each.entry && now >= each.entry->names_late().value_or(Moment::max()))
      tell_limit(deeds, id, *each.entry,
                 "the name service of this machine has not said yet which limits apply to you");
    answer_look(deeds, id, each, has_queue);
  }
  // While the store does not answer, all keep their entries.
  if (state.board && state.fault.empty() && has_queue && now >= next_show(*state.board, now))
    show(deeds, *state.board);
}

Moment next_show(const Board& board, Moment now) {
  if (!board.shown_at) return now;
  return *board.shown_at + (board.has_news ? kBetweenShows : kWithoutNews);
}

}  // namespace berth::lab_agent
