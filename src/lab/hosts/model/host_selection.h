#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/record.h"
#include "berth/hosts/model/host_offer.h"
#include "berth/request/request.h"

// On which host a command starts, as a pure step: what a host has said goes in, and what to tell
// which host comes out. The request waits in the queues of several hosts at once. The first host
// that grants it asks before it starts the command. The caller says yes to this host and dismisses
// all others. It says yes only once, even if that host is lost before anybody knows whether the
// command has begun.
namespace berth::hosts::host_selection {

/// In how many queues a request waits at once. With fewer, it waits although GPUs are free on hosts
/// whose queue it has not joined (tests/bench/placement.h: with four of twenty, up to six times as
/// long).
inline constexpr std::size_t kMostHostQueues = 20;
/// How many of these it joins at first, when it may start at once. It does not join more, because
/// each of them would grant it GPUs that it then gives back.
inline constexpr std::size_t kFirstHostQueues = 4;

/// How a host stands to the request.
enum class HostState {
  asked,     ///< it was asked for its offer
  awaited,   ///< the request waits in the lab queue until it may join this host
  in_queue,  ///< the request waits in its queue
  chosen,    ///< the caller said yes to it
  out,       ///< it was dismissed, has refused, or is lost
};

struct Candidate {
  std::string host;
  HostState state = HostState::asked;
  std::optional<Offer> offer{};
  std::optional<Error> why{};  ///< why it is out; nullopt: another was chosen
};

/// How the request joins hosts.
enum class Joining {
  few_at_once,          ///< if there are few hosts, it joins all at once, without offers
  by_offers,            ///< the offers decide, even with few hosts
  as_opened,            ///< it joins each host once that is opened in the lab queue, without offers
  as_opened_by_offers,  ///< the same, but the offers decide for which hosts it waits first
};

/// How long it has waited for offers.
enum class OfferPatience {
  for_first,  ///< it joins no host before all have offered
  for_all,    ///< it joins hosts where it starts at once, whatever others offer
  none,       ///< it waits for no more offers, and joins all queues
};

struct State {
  Request request;
  std::vector<Candidate> hosts;
  Joining joining = Joining::few_at_once;
  OfferPatience patience = OfferPatience::for_first;
  std::optional<std::size_t> chosen{};
  bool started = false;  ///< the chosen host has said that the command begins
  std::optional<Error> failure{};
};

/// The host offers this. If the request waits there: the host had this when it granted it.
struct Offered {
  Offer offer;
};
/// The host has granted the request, and asks whether to start.
struct AsksToStart {};
/// The host has got the yes, and the command begins.
struct Begins {};
/// The host has refused, or is lost.
struct Gone {
  Error why;
};
/// The request may join this host now: its turn there has come in the lab queue.
struct Opened {};
/// The request has let this host go, and may join it again once it is opened.
struct Closed {};
/// Not from a host: the hosts that are about as near as the first to offer have offered too.
struct FirstOffers {};
/// Not from a host: the time for offers, and for a start at once, is over.
struct EnoughOffers {};
using Event = std::variant<Offered, Opened, Closed, AsksToStart, Begins, Gone, FirstOffers, EnoughOffers>;

/// What to tell a host. await_opening: nothing; the request is to wait in the lab queue for this
/// host, and for all others of which the same step says so.
struct Message {
  enum class Kind { ask_offer, await_opening, join, yes, let_go } kind;
  std::size_t host = 0;

  bool operator==(const Message&) const = default;
};

struct Step {
  State state;
  std::vector<Message> messages;
};

/// If the request names a path (--near), it joins a host without this path only once no host that
/// has the path is left. In the lab queue a request has one entry for all hosts that it waits for,
/// so there it waits for no host before it has left all those for which it waited.
Step begin(Request request, const std::vector<std::string>& hosts, Joining joining = Joining::few_at_once);

/// `host`: its index in the state.
Step next(State state, std::size_t host, Event what);

/// The host to start on, of these hosts, which have all granted the request: the one that had the
/// fewest free devices. So the others keep room for requests that ask for many. REQUIRES: there is
/// one.
std::size_t tightest(const State& state, const std::vector<std::size_t>& hosts);

}  // namespace berth::hosts::host_selection

// The entry of a request in the lab queue, as its caller (caller_step.h) knows it.
namespace berth::hosts::caller {

// Why the agent does not tell the position.

/// The agent was not reached yet. It is waited for until then.
struct AgentMissing {
  Error why;
  SteadyTime until;
};
/// The store does not answer.
struct StoreMissing {
  std::string why;
};
/// Nothing is in its way.
struct Nothing {};
using Obstacle = std::variant<Nothing, AgentMissing, StoreMissing>;

// How far the request has come in the lab queue.

/// The site has no lab queue.
struct NoLab {};
/// It waits for no host there: it is about to enter, or it knows from no offer yet for which hosts.
struct NotQueued {};
struct Queued {
  SteadyTime since;
  std::optional<SteadyTime> until{};  ///< it waits no longer for a host to be opened
  Obstacle obstacle{};
  std::string limit{};   ///< why its user may not start it now; "": the user may
  bool is_told = false;  ///< which hosts are open to it
  /// The store is asked whether the command may start on this host, which grants it.
  std::optional<std::size_t> asked{};
};
using Entry = std::variant<NoLab, NotQueued, Queued>;

/// Why the request no longer waits for the hosts that were not opened. REQUIRES: the wait has an
/// end.
Error why_unopened(const Queued& queued);

/// In the lab queue a host is one host, whoever logs in there.
std::string name_in_lab(std::string_view host);

}  // namespace berth::hosts::caller
