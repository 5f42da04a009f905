#include "berth/hosts/model/caller_deeds.h"

#include <algorithm>

#include "berth/hosts/model/host_offer.h"

namespace berth::hosts::caller {
namespace {

using namespace std::chrono_literals;
using host_selection::HostState;
using host_selection::Message;

// How much longer than for the first offer, or the first grant, the others are waited for.
constexpr int kGatheringShare = 5;
constexpr SteadyTime kLongestGathering = 50ms;
// A host that lets a grant go sooner has failed, and was not only told nothing.
constexpr SteadyTime kGrantIsKept = 5s;

}  // namespace

Step CallerDeeds::end() {
  if (!awaited_.empty()) {
    state_.entry = NotQueued{};
    act(EnterLabQueue{std::exchange(awaited_, {})});
  }
  return {std::move(state_), std::move(actions_)};
}

void CallerDeeds::leave(std::size_t host, const Error& why) {
  if (is_let_go_for_a_while(host, why)) return let_go(host);
  if (!state_.selection.chosen && queued() != nullptr) {
    // Nothing has started there. If another host grants the request, the store is asked for that
    // host.
    act(TellLeft{host});
    asks_no_more(host);
  }
  disconnect(host);
  happen(host, host_selection::Gone{why});
  if (!state_.selection.failure && !state_.selection.chosen) act(TellOut{host, why.message});
}

// A host that gets no word for some time lets its GPUs go. The request keeps its position in the
// lab queue, and joins the queue of this host again when the host is opened again.
bool CallerDeeds::is_let_go_for_a_while(std::size_t host, const Error& why) {
  const Queued* entry = queued();
  const auto* granting = std::get_if<Granting>(link_of(host));
  if (entry == nullptr || granting == nullptr || state_.selection.chosen) return false;
  // The host says so itself. If this process was stopped for long, it may read the grant only now.
  const bool has_waited = why.code == ErrorCode::timed_out || now_ - granting->since >= kGrantIsKept;
  return has_waited && !(entry->until && now_ >= *entry->until);
}

void CallerDeeds::let_go(std::size_t host) {
  asks_no_more(host);
  if (is(host, HostState::in_queue)) {
    disconnect(host);
    happen(host, host_selection::Closed{});
  }
  act(TellClosed{host});
}

void CallerDeeds::asks_no_more(std::size_t host) {
  if (Queued* entry = queued(); entry != nullptr && entry->asked == host) entry->asked.reset();
}

void CallerDeeds::happen(std::size_t host, host_selection::Event what) {
  take(host_selection::next(std::move(state_.selection), host, std::move(what)));
}

void CallerDeeds::take(host_selection::Step step) {
  state_.selection = std::move(step.state);
  for (const Message& message : step.messages) take(message);
}

void CallerDeeds::take(const Message& message) {
  const std::size_t host = message.host;
  switch (message.kind) {
    case Message::Kind::await_opening:
      disconnect(host);  // it has not offered
      return awaited_.push_back(host);
    case Message::Kind::ask_offer:
      return connect(host);
    case Message::Kind::join:
      return link_of(host) == nullptr ? connect(host) : act(SayJoin{host});
    case Message::Kind::yes:
      return act(SayYes{host});
    case Message::Kind::let_go:
      return disconnect(host);
  }
}

void CallerDeeds::connect(std::size_t host) {
  state_.links.insert_or_assign(host, Connecting{now_ + kPatienceForHello});
  act(Connect{host});
}

void CallerDeeds::disconnect(std::size_t host) {
  if (state_.links.erase(host) != 0) act(Disconnect{host});
}

// The others get a share of the time that the first answer has taken.
void CallerDeeds::gather(Window& window) const {
  if (std::holds_alternative<Unheard>(window))
    window = Gathering{now_ + std::min((now_ - state_.began) / kGatheringShare, kLongestGathering)};
}

Link* CallerDeeds::link_of(std::size_t host) {
  const auto found = state_.links.find(host);
  return found == state_.links.end() ? nullptr : &found->second;
}

bool CallerDeeds::has_greeted(std::size_t host) {
  const Link* link = link_of(host);
  return link != nullptr && !std::holds_alternative<Connecting>(*link);
}

Link* CallerDeeds::link_in_queue(std::size_t host) {
  return has_greeted(host) && is(host, HostState::in_queue) ? link_of(host) : nullptr;
}

std::vector<std::size_t> CallerDeeds::hosts_named(std::string_view name) const {
  std::vector<std::size_t> named;
  for (std::size_t host = 0; host < state_.selection.hosts.size(); ++host)
    if (name_of(host) == name) named.push_back(host);
  return named;
}

}  // namespace berth::hosts::caller
