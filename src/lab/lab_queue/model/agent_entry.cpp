#include "berth/lab_queue/model/agent_entry.h"

#include <algorithm>

namespace berth::lab_queue::lab_agent {
namespace {

using namespace std::chrono_literals;
using Reach = Opened::Reach;

/// A request that lives answers from its loop, on this machine, however busy that is.
constexpr auto kForHere = 5s;
/// Longer than a connection by ssh takes, or than it takes to see that there is none.
constexpr auto kForJoined = 60s;
/// For a user of whom it is known that requests do not answer, or do not join: the user's own next
/// request waits for it.
constexpr auto kForKnown = 100ms;
constexpr auto kRemembered = 10min;
constexpr auto kPatienceForNames = 3s;

}  // namespace

LabTicket QueueEntry::ticket() const {
  LabTicket ticket = kept;
  for (const NamedHost& each : hosts) {
    if (each.is_outside) continue;
    const auto* opened = std::get_if<Opened>(&each.how);
    const bool is_out = opened != nullptr && opened->reach == Reach::skipped;
    if (!is_out && !std::holds_alternative<Left>(each.how)) ticket.hosts.push_back(each.name);
    if (opened != nullptr && opened->reach == Reach::stands) ticket.joined.push_back(each.name);
  }
  return ticket;
}

LabStart QueueEntry::start_on(std::string_view host, std::int64_t pid) const {
  return {std::string(host), pid, kept.uid, kept.gpus, kept.number};
}

NamedHost* QueueEntry::host(std::string_view name) {
  const auto found = std::ranges::find(hosts, name, &NamedHost::name);
  return found == hosts.end() ? nullptr : &*found;
}

void QueueEntry::lets_go(NamedHost& host, OnHost how) {
  host.how = how;
  host.is_let_go = true;
  const auto* asks = std::get_if<Asks>(&stage);
  const auto* runs = std::get_if<Runs>(&stage);
  if ((asks != nullptr && asks->host == host.name) || (runs != nullptr && runs->host == host.name))
    stage = WaitsForHosts{};
}

bool QueueEntry::has_lost(const LabStart& start, std::int64_t pid) const {
  if (start.pid != pid || std::holds_alternative<Runs>(stage)) return false;
  if (const auto* asks = std::get_if<Asks>(&stage); asks != nullptr && asks->host == start.host) return false;
  const auto named = std::ranges::find(hosts, start.host, &NamedHost::name);
  return named == hosts.end() || named->is_let_go;
}

bool QueueEntry::is_closing(std::string_view host) const {
  const auto named = std::ranges::find(hosts, host, &NamedHost::name);
  const auto* opened = named == hosts.end() ? nullptr : std::get_if<Opened>(&named->how);
  return opened != nullptr && opened->closing.has_value();
}

bool QueueEntry::is_ready() const {
  return !std::holds_alternative<LimitsAsked>(limits) || std::holds_alternative<Runs>(stage);
}

std::optional<SteadyTime> QueueEntry::names_late() const {
  const auto* asked = std::get_if<LimitsAsked>(&limits);
  if (asked == nullptr || !told.limit.empty()) return std::nullopt;
  return asked->since + kPatienceForNames;
}

bool JoinPatience::is_awaited(const Opened& opened) {
  return opened.reach == Reach::silent || opened.reach == Reach::answers;
}

bool JoinPatience::is_known(const Opened& opened, std::uint32_t uid) const {
  const ByUser& used_up = opened.reach == Reach::answers ? late_ : silent_;
  const auto of_user = used_up.find(uid);
  return of_user != used_up.end() && opened.since < of_user->second + kRemembered;
}

bool JoinPatience::awaits(std::uint32_t uid, SteadyTime now) const {
  const auto is_over = [&](const ByUser& used_up) {
    const auto of_user = used_up.find(uid);
    return of_user == used_up.end() || now >= of_user->second + kRemembered;
  };
  return is_over(silent_) && is_over(late_);
}

SteadyTime JoinPatience::end_for(const Opened& opened, std::uint32_t uid) const {
  if (is_known(opened, uid)) return opened.since + kForKnown;
  return opened.since + (opened.reach == Reach::answers ? kForJoined : kForHere);
}

void JoinPatience::skip(QueueEntry& entry, SteadyTime now) {
  const std::uint32_t uid = entry.kept.uid;
  for (NamedHost& each : entry.hosts) {
    auto* opened = std::get_if<Opened>(&each.how);
    if (each.is_outside || opened == nullptr || !is_awaited(*opened) || now < end_for(*opened, uid)) continue;
    if (!is_known(*opened, uid)) (opened->reach == Reach::answers ? late_ : silent_)[uid] = now;
    opened->reach = Reach::skipped;
  }
  entry.kept.awaited = awaits(uid, now);
}

std::optional<SteadyTime> JoinPatience::next(const QueueEntry& entry) const {
  std::optional<SteadyTime> next;
  for (const NamedHost& each : entry.hosts)
    if (const auto* opened = std::get_if<Opened>(&each.how);
        !each.is_outside && opened != nullptr && is_awaited(*opened))
      next = std::min(next.value_or(SteadyTime::max()), end_for(*opened, entry.kept.uid));
  return next;
}

}  // namespace berth::lab_queue::lab_agent
