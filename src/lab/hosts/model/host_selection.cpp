#include "berth/hosts/model/host_selection.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"

namespace berth::hosts::host_selection {
namespace {

std::size_t count_of(const State& state, HostState wanted) {
  return static_cast<std::size_t>(std::ranges::count(state.hosts, wanted, &Candidate::state));
}

bool is_still_asked(const State& state) {
  return std::ranges::any_of(
      state.hosts, [](const Candidate& each) { return each.state == HostState::asked && !each.offer; });
}

// If the request waited on a host, the reason of that host decides the code, even if other hosts
// were down.
ErrorCode code_of(const State& state) {
  const auto any = [&](ErrorCode code) {
    return std::ranges::any_of(state.hosts,
                               [&](const Candidate& each) { return each.why && each.why->code == code; });
  };
  for (const ErrorCode code : {ErrorCode::timed_out, ErrorCode::not_now})
    if (any(code)) return code;
  const bool all_impossible = std::ranges::all_of(
      state.hosts, [](const Candidate& each) { return each.why && each.why->code == ErrorCode::impossible; });
  return all_impossible ? ErrorCode::impossible : ErrorCode::failure;
}

std::string indented(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 1)
    text.insert(at + 1, "    ");
  return text;
}

Error nobody_is_left(const State& state) {
  std::string text = state.hosts.size() == 1 ? "" : "the command starts on none of the hosts:";
  for (const Candidate& each : state.hosts) {
    if (state.hosts.size() > 1) text += "\n  ";
    const std::string why = each.why ? each.why->message : "let go";
    text += fmt::format("{}: {}", printable(each.host), state.hosts.size() > 1 ? indented(why) : why);
  }
  return {code_of(state), text};
}

void put_out(Candidate& candidate, Error why) {
  candidate.state = HostState::out;
  candidate.why = std::move(why);
}

std::vector<RankedHost> ranked_offers(const State& state, std::vector<std::size_t>& indices) {
  std::vector<HostAnswer> answers;
  for (std::size_t i = 0; i < state.hosts.size(); ++i) {
    const Candidate& each = state.hosts[i];
    if (each.state != HostState::asked || !each.offer) continue;
    indices.push_back(i);
    answers.push_back({each.host, *each.offer});
  }
  return rank_hosts(state.request, answers);
}

bool is_in_lab(const State& state) {
  return state.joining == Joining::as_opened || state.joining == Joining::as_opened_by_offers;
}

bool waits(const State& state) {
  return count_of(state, HostState::awaited) + count_of(state, HostState::in_queue) > 0;
}

bool waits_near(const State& state) {
  return std::ranges::any_of(state.hosts, [](const Candidate& each) {
    return each.state == HostState::in_queue && each.offer && each.offer->near == true;
  });
}

/// Puts those out that can never serve the request. Gives the others that have offered, the best
/// first.
std::vector<std::pair<std::size_t, RankedHost>> able_hosts(Step& step) {
  std::vector<std::size_t> indices;
  std::vector<std::pair<std::size_t, RankedHost>> able;
  for (RankedHost& each : ranked_offers(step.state, indices)) {
    const std::size_t host = indices[each.host];
    if (each.can_serve) {
      able.emplace_back(host, std::move(each));
      continue;
    }
    put_out(step.state.hosts[host], {ErrorCode::impossible, each.reason});
    step.messages.push_back({Message::Kind::let_go, host});
  }
  return able;
}

// The request waits for the hosts that have the path. Once none of them is left, it waits for all
// others, also for those that have not offered.
void await_openings(Step& step, const std::vector<std::pair<std::size_t, RankedHost>>& able) {
  State& state = step.state;
  if (waits(state) || (state.patience != OfferPatience::none && is_still_asked(state))) return;
  const bool some_near = std::ranges::any_of(
      able, [&](const auto& each) { return state.hosts[each.first].offer->near == true; });
  for (std::size_t host = 0; host < state.hosts.size(); ++host) {
    Candidate& candidate = state.hosts[host];
    if (candidate.state != HostState::asked) continue;
    if (some_near && (!candidate.offer || candidate.offer->near != true)) continue;
    candidate.state = HostState::awaited;
    step.messages.push_back({Message::Kind::await_opening, host});
  }
}

// The request joins hosts where it starts at once first. It joins other hosts when all have
// offered, the best first. If it has not started when the time for offers is over, it joins the
// remaining queues. It joins a host without the path only when all have offered, and no host with
// the path is left.
void join_hosts(Step& step, const std::vector<std::pair<std::size_t, RankedHost>>& able) {
  State& state = step.state;
  const bool choose = state.patience == OfferPatience::none || !is_still_asked(state);
  const std::size_t most = state.patience == OfferPatience::none ? kMostHostQueues : kFirstHostQueues;
  for (const auto& [host, each] : able) {
    Candidate& candidate = state.hosts[host];
    if (candidate.offer->near == false && (!choose || each.in_reserve || waits_near(state))) continue;
    if ((choose || (state.patience == OfferPatience::for_all && candidate.offer->at_once)) &&
        count_of(state, HostState::in_queue) < most) {
      candidate.state = HostState::in_queue;
      step.messages.push_back({Message::Kind::join, host});
    }
  }
}

void fill_host_queues(Step& step) {
  State& state = step.state;
  const auto able = able_hosts(step);
  if (is_in_lab(state))
    await_openings(step, able);
  else
    join_hosts(step, able);
  if (count_of(state, HostState::asked) == 0 && !waits(state)) state.failure = nobody_is_left(state);
}

void choose(Step& step, std::size_t host) {
  State& state = step.state;
  if (state.chosen || state.hosts[host].state != HostState::in_queue) return;
  state.chosen = host;
  state.hosts[host].state = HostState::chosen;
  step.messages.push_back({Message::Kind::yes, host});
  for (std::size_t i = 0; i < state.hosts.size(); ++i) {
    if (i == host || state.hosts[i].state == HostState::out) continue;
    state.hosts[i].state = HostState::out;
    step.messages.push_back({Message::Kind::let_go, i});
  }
}

// Whether it has begun there nobody can know, so it begins nowhere else.
Error lost_with_the_yes(const State& state, const Error& why) {
  const std::string host = printable(state.hosts[*state.chosen].host);
  if (state.started)
    return {ErrorCode::failure, fmt::format("{} was lost while the command ran there: {}; what is left of "
                                            "the command is ended there",
                                            host, why.message)};
  return {
      ErrorCode::failure,
      fmt::format("{0} had granted the GPUs, and was lost when the command was to start: {1}; the command "
                  "was started on no other host, since it may have begun on {0}; look there (ssh {0} berth "
                  "list), then start it again",
                  host, why.message)};
}

void leave(Step& step, std::size_t host, Error why) {
  State& state = step.state;
  Candidate& candidate = state.hosts[host];
  if (candidate.state == HostState::out) return;
  if (candidate.state == HostState::chosen) {
    state.failure = lost_with_the_yes(state, why);
    return put_out(candidate, std::move(why));
  }
  put_out(candidate, std::move(why));
  fill_host_queues(step);
}

}  // namespace

Step begin(Request request, const std::vector<std::string>& hosts, Joining joining) {
  Step step{{std::move(request), {}, joining}, {}};
  const bool few = hosts.size() <= kFirstHostQueues && joining == Joining::few_at_once;
  const auto [wanted, message] = joining == Joining::as_opened
                                     ? std::pair(HostState::awaited, Message::Kind::await_opening)
                                 : few ? std::pair(HostState::in_queue, Message::Kind::join)
                                       : std::pair(HostState::asked, Message::Kind::ask_offer);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    step.state.hosts.push_back({hosts[i], wanted});
    step.messages.push_back({message, i});
  }
  return step;
}

Step next(State state, std::size_t host, Event what) {
  Step step{std::move(state), {}};
  if (auto* offered = std::get_if<Offered>(&what)) {
    Candidate& candidate = step.state.hosts[host];
    if (step.state.chosen || candidate.state == HostState::out) return step;
    if (candidate.state != HostState::asked) {
      if (!candidate.offer) candidate.offer.emplace();
      candidate.offer->free = offered->offer.free;
      return step;
    }
    candidate.offer = std::move(offered->offer);
    fill_host_queues(step);
  } else if (std::holds_alternative<Opened>(what)) {
    if (step.state.hosts[host].state != HostState::awaited || step.state.chosen) return step;
    step.state.hosts[host].state = HostState::in_queue;
    step.messages.push_back({Message::Kind::join, host});
  } else if (std::holds_alternative<Closed>(what)) {
    Candidate& candidate = step.state.hosts[host];
    if (candidate.state == HostState::in_queue) candidate.state = HostState::awaited;
  } else if (std::holds_alternative<AsksToStart>(what)) {
    choose(step, host);
  } else if (std::holds_alternative<Begins>(what)) {
    if (step.state.chosen == host) step.state.started = true;
  } else if (auto* gone = std::get_if<Gone>(&what)) {
    leave(step, host, std::move(gone->why));
  } else if (!step.state.chosen) {
    const bool enough = std::holds_alternative<EnoughOffers>(what);
    step.state.patience =
        std::max(step.state.patience, enough ? OfferPatience::none : OfferPatience::for_all);
    fill_host_queues(step);
  }
  return step;
}

std::size_t tightest(const State& state, const std::vector<std::size_t>& hosts) {
  return *std::ranges::min_element(hosts, {}, [&](std::size_t host) {
    const auto& offer = state.hosts[host].offer;
    return offer ? offer->free : std::numeric_limits<std::size_t>::max();
  });
}

}  // namespace berth::hosts::host_selection

namespace berth::hosts::caller {

Error why_unopened(const Queued& queued) {
  const bool no_wait = *queued.until == queued.since;
  const auto reason = [&]() -> std::string {
    if (const auto* agent = std::get_if<AgentMissing>(&queued.obstacle)) return agent->why.message;
    if (const auto* store = std::get_if<StoreMissing>(&queued.obstacle))
      return fmt::format("the store of the lab does not answer: {}", store->why);
    if (!queued.is_told) return "the store of the lab does not answer";
    if (!queued.limit.empty()) return queued.limit;
    return no_wait ? "earlier requests wait for it in the queue of the lab"
                   : "earlier requests waited for it in the queue of the lab until the time was over";
  };
  return {no_wait ? ErrorCode::not_now : ErrorCode::timed_out, reason()};
}

std::string name_in_lab(std::string_view host) {
  return std::string(host.substr(host.rfind('@') + 1));
}

}  // namespace berth::hosts::caller
