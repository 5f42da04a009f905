#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/lab_queue/model/agent_deeds.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/machines/host.h"
#include "berth/request/request.h"

// The lines that a client says (docs/store-protocol.md).
namespace berth::lab_queue::lab_agent {
namespace {

/// Why a connection ends that says what this version does not know.
constexpr std::string_view kUnknownWord = "it was asked what this version does not know";
constexpr std::array<std::string_view, 5> kOfHost{"here", "joined", "closed", "left", "start"};

bool is_mark(std::string_view text) {
  return text.size() >= 16 && text.size() <= 64 && std::ranges::all_of(text, [](char each) {
           return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f');
         });
}

/// A rule for each kind of line.
class HearingRules {
 public:
  HearingRules(AgentDeeds& deeds, ClientId id) : deeds_(deeds), id_(id), one_(*deeds.client(id)) {}

  void hear(std::string_view line) {
    const std::vector<std::string_view> words = words_at(line);
    const std::string_view word = words.empty() ? "" : words[0];
    const std::string name(words.size() > 1 ? words[1] : "");
    const auto from = number_from_text<std::size_t>(name);
    if (word == "status")
      one_.wants_status = true;
    else if (word == "line" && from)
      one_.wants_queue = *from;
    else if (word == "wait" && words.size() >= 5 && words.size() <= 6 && is_mark(name))
      take_in(words);
    else if (std::ranges::find(kOfHost, word) != kOfHost.end())
      hear_of_host(word, name);
    else
      dismiss(kUnknownWord);
  }

 private:
  /// It wants an entry: `wait MARK LANE HOST,HOST GPUS HOST`.
  void take_in(const std::vector<std::string_view>& words) {
    const auto lane = number_from_text<unsigned>(words[2]);
    const auto gpus = number_from_text<unsigned>(words[4]);
    if (!lane || !gpus) return dismiss("this is no number of GPUs");
    const Settings& settings = deeds_.state.settings;
    QueueEntry entry{.kept = {.id = id_of(settings.name, words[1]),
                              .home = settings.name,
                              .uid = one_.uid,
                              .lane = *lane,
                              .gpus = std::max(*gpus, 1U),
                              .origin = origin_of(settings.machine, one_.pid),
                              .hosts = {},
                              .joined = {}}};
    for (const std::string_view host : words_at(words[3], ','))
      if (entry.hosts.size() <= kMostHostsOfRequest && entry.host(host) == nullptr)
        entry.hosts.push_back({.name = std::string(host),
                               .is_outside = !settings.hosts.empty() && !settings.hosts.contains(host)});
    if (entry.hosts.size() > kMostHostsOfRequest)
      return dismiss(fmt::format("a request may name {} hosts at most; name fewer with --hosts or --host",
                                 kMostHostsOfRequest));
    if (words[3].size() > kLongestHostsOfRequest)
      return dismiss(
          fmt::format("the names of the hosts of a request may have {} bytes at most in all; name "
                      "fewer with --hosts or --host",
                      kLongestHostsOfRequest));
    const auto is_name = [](const NamedHost& each) { return check_host_name(each.name).has_value(); };
    if (entry.hosts.empty() || !std::ranges::all_of(entry.hosts, is_name))
      return dismiss("these are no hosts");
    if (one_.entry) return dismiss(kUnknownWord);
    const auto has_it = [&](const auto& each) {
      return each.second.entry && each.second.entry->kept.id == entry.kept.id;
    };
    if (std::ranges::any_of(deeds_.state.clients, has_it))
      return dismiss("this request has its entry on another connection");
    // Its command runs there, since an earlier agent said yes.
    if (words.size() == 6 && entry.host(words[5]) != nullptr) entry.stage = Runs{std::string(words[5])};
    if (has_lab_limit(settings.limits)) {
      entry.limits = LimitsAsked{deeds_.given.now};
      deeds_.act(AskLimits{id_, one_.uid});
    }
    deeds_.state.removals.erase(entry.kept.id);
    one_.entry = std::move(entry);
    if (!deeds_.state.fault.empty()) tell_silence(deeds_, id_, *one_.entry);
  }

  void hear_of_host(std::string_view word, const std::string& name) {
    NamedHost* host = one_.entry ? one_.entry->host(name) : nullptr;
    if (host == nullptr) return dismiss(kUnknownWord);
    if (std::holds_alternative<Left>(host->how)) {
      // Its answers to what it was told of the host may come after its word that it has left.
      if (word == "start") dismiss(kUnknownWord);
      return;
    }
    auto* opened = std::get_if<Opened>(&host->how);
    if (word == "here") {
      if (opened != nullptr && opened->reach != Opened::Reach::stands) opened->reach = Opened::Reach::answers;
    } else if (word == "joined") {
      // It may have joined while an earlier agent was here.
      if (opened == nullptr) opened = &host->how.emplace<Opened>(Opened{.since = deeds_.given.now});
      opened->reach = Opened::Reach::stands;
    } else if (word == "closed") {
      one_.entry->lets_go(*host, Shut{});
    } else if (word == "left") {
      one_.entry->lets_go(*host, Left{});
    } else {
      ask_to_start(*one_.entry, name);
    }
  }

  void ask_to_start(QueueEntry& entry, const std::string& host) {
    auto* runs = std::get_if<Runs>(&entry.stage);
    if (runs == nullptr) return (void)(entry.stage = Asks{host});
    if (runs->host != host) return dismiss("this request was started already");
    runs->asks_again = true;
  }

  void dismiss(std::string_view why) { deeds_.dismiss(id_, why, true); }

  AgentDeeds& deeds_;
  ClientId id_;
  Client& one_;
};

}  // namespace

void hear(AgentDeeds& deeds, ClientId id, std::string_view line) {
  HearingRules(deeds, id).hear(line);
}

namespace {

using namespace std::chrono_literals;
using Homes = std::set<std::string, std::less<>>;

/// A home from which nobody has heard for so long is skipped. It is counted here: the store has
/// no clock.
constexpr auto kSilence = 30s;
/// A client that does not answer `close` within this time may have been stopped. It is told again.
constexpr auto kClosing = 10s;
constexpr auto kBetweenShows = 1s;
/// Which requests are skipped depends on the time as well.
constexpr auto kWithoutNews = 5s;
/// How many requests one answer tells: all of a long queue would be more than may be sent at once.
constexpr std::size_t kMostStanding = 500;

Homes absent_homes(AgentDeeds& deeds) {
  auto& silent_since = deeds.state.silent_since;
  const SteadyTime now = deeds.given.now;
  const auto& queued = deeds.given.store.queue().homes();
  Homes homes;
  for (const auto& [home, tickets] : queued) homes.insert(home);
  for (const auto& [id, start] : deeds.given.store.starts()) homes.emplace(home_of(id));
  const auto& alive = deeds.given.store.alive();
  // Also where the last ticket went: if such a home is silent once more, it is silent from then on.
  std::erase_if(silent_since,
                [&](const auto& each) { return alive.contains(each.first) || !homes.contains(each.first); });
  Homes absent;
  for (const std::string& home : homes)
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
  const SteadyTime now = deeds.given.now;
  for (NamedHost& each : entry.hosts)
    if (auto* opened = std::get_if<Opened>(&each.how);
        opened != nullptr && opened->closing && now - *opened->closing > kClosing)
      opened->closing.reset();
  const auto limited = openings.taken_of_limit(entry.kept.id);
  if (limited) {
    if (const auto why = deeds.why_over(entry, has, *limited)) hold_back(deeds, id, entry, *why);
  } else {
    tell_limit(deeds, id, entry, "");
  }
  const auto open = [&](NamedHost* host) {
    if (host == nullptr || !std::holds_alternative<Shut>(host->how)) return;
    host->how = Opened{.since = now};
    deeds.tell(id, "open " + host->name);
    deeds.tell(id, "answer " + host->name);
  };
  for (const std::string& name : openings.hosts_to_join(entry.kept.id)) open(entry.host(name));
  // Nobody stands before it there but in the queue of the host itself.
  for (NamedHost& each : entry.hosts)
    if (each.is_outside && !limited) open(&each);
  // The entry is sent last. So a request that does not wait knows that no other host is open to it
  // now.
  const std::size_t position = openings.position(entry.kept.id);
  if (std::exchange(entry.told.position, position) != position)
    deeds.tell(id, fmt::format("place {}", position));
}

/// Cut: a user who may write to etcd can write more there than an agent does.
std::string shown_origin(const LabStanding& standing) {
  return standing.origin.substr(0, kLongestOrigin);
}

/// The answer to `status`.
std::vector<std::string> status_answer(const AgentDeeds& deeds) {
  const State& state = deeds.state;
  const lab_queue::LabCopy& store = deeds.given.store;
  std::vector<std::string> lines{fmt::format("store {}", deeds.given.url),
                                 fmt::format("name {}", state.settings.name)};
  if (!state.fault.empty()) lines.push_back("silent " + printable(state.fault));
  for (const auto& [home, version] : store.alive())
    lines.push_back(fmt::format("alive {} {}", printable(home), printable(version)));
  lines.push_back(fmt::format("waiting {}", store.queue().size()));
  lines.emplace_back("end");
  return lines;
}

/// Answers a client that looks.
void answer_look(AgentDeeds& deeds, ClientId id, Client& one, bool has_queue) {
  const auto tell_lines = [&](const std::vector<std::string>& lines) {
    for (const std::string& each : lines) deeds.tell(id, each);
  };
  const State& state = deeds.state;
  if (std::exchange(one.wants_status, false)) tell_lines(status_answer(deeds));
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
  const SteadyTime now = deeds.given.now;
  // Before that, a part of it has been read so far.
  const bool has_queue = !state.fault.empty() || deeds.given.store.is_whole();
  for (auto& [id, each] : state.clients) {
    if (each.entry && now >= each.entry->names_late().value_or(SteadyTime::max()))
      tell_limit(deeds, id, *each.entry,
                 "the name service of this machine has not said yet which limits apply to you");
    answer_look(deeds, id, each, has_queue);
  }
  // While the store does not answer, all keep their entries.
  if (state.board && state.fault.empty() && has_queue && now >= next_show(*state.board, now))
    show(deeds, *state.board);
}

std::vector<std::string> queue_answer(const LabOrder& order, std::size_t from) {
  const std::size_t begin = std::min(from, order.standing.size());
  const std::size_t end = std::min(order.standing.size(), begin + kMostStanding);
  std::vector<std::string> lines;
  for (std::size_t i = begin; i < end; ++i) {
    const LabStanding& each = order.standing[i];
    lines.push_back(fmt::format("stands {} {}", each.position, printable(shown_origin(each))));
  }
  lines.push_back(fmt::format("outside {}", order.outside));
  if (end < order.standing.size()) lines.push_back(fmt::format("more {}", end));
  return lines;
}

SteadyTime next_show(const Board& board, SteadyTime now) {
  if (!board.shown_at) return now;
  return *board.shown_at + (board.has_news ? kBetweenShows : kWithoutNews);
}

}  // namespace berth::lab_queue::lab_agent
