#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/error.h"
#include "berth/hosts/model/host_offer.h"
#include "berth/hosts/model/host_selection.h"

// The caller of `--anywhere`, until its command has begun, as a pure step: what the hosts and the
// agent of this machine have said goes in, and what to do comes out. The loop
// (src/lab/hosts/caller.cpp) does that and passes the results back in.
//
// Which host is chosen is up to host_selection.h. The caller adds what takes time: connections,
// grants that are compared before one is taken, and the entry in the lab queue, without whose word
// nothing starts.
namespace berth::hosts::caller {

// How far a host that is connected has come. A host without an entry is not connected.

/// Its ssh was started. The envoy is to speak until then.
struct Connecting {
  SteadyTime until;
};
/// Its envoy has our question.
struct EnvoyAsked {};
/// It has said how the request stands in its queue.
struct Waiting {};
/// It has granted the request, and asks whether to start.
struct Granting {
  SteadyTime since;
};
using Link = std::variant<Connecting, EnvoyAsked, Waiting, Granting>;

// The time after the first of several answers in which those that are about as near may come too.
// The best of them is chosen, and not the one whose ssh was first.

/// Nobody has answered.
struct Unheard {};
struct Gathering {
  SteadyTime until;
};
struct Open {};
using Window = std::variant<Unheard, Gathering, Open>;

struct State {
  host_selection::State selection{};
  std::map<std::size_t, Link> links{};
  Entry entry{};
  Window offers{};  ///< for the first offers
  Window grants{};
  SteadyTime began{};
  std::optional<SteadyTime> wait{};  ///< for a host to be opened in the lab queue; nullopt: for ever
};

// What has happened. `host`: its index in the selection. `name`: as of name_in_lab.

/// A host has greeted. The caller works with hosts of its own version only.
struct Hello {
  std::size_t host = 0;
  std::string version;
};
struct Offered {
  std::size_t host = 0;
  Offer offer;
};
/// The request stands in the queue of the host.
struct WaitsInQueue {
  std::size_t host = 0;
};
struct Grants {
  std::size_t host = 0;
};
/// The host has got the yes. What it sends from here on is of the command.
struct Begins {
  std::size_t host = 0;
};
/// Somebody has cancelled the request on the host.
struct Cancelled {
  std::size_t host = 0;
};
/// The host has refused, cannot be connected, or is lost.
struct HostLost {
  std::size_t host = 0;
  Error why;
};
/// The answer to EnterLabQueue, if the request has come to the agent, or waits for one that starts
/// again.
struct Entered {};
/// The request has no entry in the lab queue: the answer to EnterLabQueue, or a word of the agent.
struct Dismissed {
  Error why;
};
/// No agent could be reached so far.
struct AgentIsMissing {
  Error why;
};
struct AgentIsThere {};
struct StoreIsSilent {
  std::string why;
};
struct StoreAnswers {};
struct Opened {
  std::string name;
};
/// The request has to let the host go, until it is opened again.
struct Closed {
  std::string name;
};
/// How many requests are before it.
struct Position {
  std::size_t position = 0;
};
/// Why its user may not start it now; "": the user may again.
struct Limited {
  std::string why;
};
/// The store has written that the request starts there, and nowhere else.
struct MayStart {
  std::string name;
};
/// The answer to SayYes, if it could not be written that the command starts: no yes was said.
struct NotSaid {
  Error why;
};
/// All that has come was told. The answer, if nothing else is to be done, is Sleep.
struct Settled {};
using Event = std::variant<Hello, Offered, WaitsInQueue, Grants, Begins, Cancelled, HostLost, Entered,
                           Dismissed, AgentIsMissing, AgentIsThere, StoreIsSilent, StoreAnswers, Opened,
                           Closed, Position, Limited, MayStart, NotSaid, Settled>;
struct TimedEvent {
  SteadyTime now;
  Event what;
};
/// A line of the agent (docs/store-protocol.md): its word, and the rest. nullopt: the caller has
/// nothing to do for it, or only an agent of a later version says it.
std::optional<Event> said_by_agent(std::string_view word, const std::string& rest);

// What to do.

/// Start an ssh to the host. If that fails, the answer is HostLost.
struct Connect {
  std::size_t host = 0;
};
/// Send the question for an offer.
struct AskForOffer {
  std::size_t host = 0;
};
/// Send the request: the host puts it into its queue.
struct AskToRun {
  std::size_t host = 0;
};
/// Tell a host that was asked for an offer to put the request into its queue.
struct SayJoin {
  std::size_t host = 0;
};
/// Write that the command starts there, and then tell the host to start it.
struct SayYes {
  std::size_t host = 0;
};
/// End the connection, and with it the ticket and the lease there.
struct Disconnect {
  std::size_t host = 0;
};
/// Wait in the lab queue for these hosts, with a new entry instead of any earlier one. The answer
/// is Entered or Dismissed.
struct EnterLabQueue {
  std::vector<std::size_t> hosts;
};
/// Tell the agent that the request stands in the queue of the host.
struct TellJoined {
  std::size_t host = 0;
};
/// Tell the agent that the request waits for the host no longer, and that nothing starts there.
struct TellLeft {
  std::size_t host = 0;
};
/// Tell the agent that nothing starts there until the host is opened again.
struct TellClosed {
  std::size_t host = 0;
};
/// Ask the agent whether the command may start there.
struct AskToStart {
  std::size_t host = 0;
};
/// Tell the user, unless that is not wanted.
struct Tell {
  std::string sentence;
};
/// Tell the user that the host is out, unless the request starts at once elsewhere.
struct TellOut {
  std::size_t host = 0;
  std::string why;
};
/// Pass the streams of the command, which has begun there. If the host is lost, the answer is
/// HostLost.
struct Serve {
  std::size_t host = 0;
};
/// End all, as a request ends that is cancelled here.
struct EndCancelled {
  std::size_t host = 0;
};
struct Fail {
  Error why;
};
/// Wait for what comes. nullopt: for as long as that takes.
struct Sleep {
  std::optional<SteadyTime> until{};
};
using Action =
    std::variant<Connect, AskForOffer, AskToRun, SayJoin, SayYes, Disconnect, EnterLabQueue, TellJoined,
                 TellLeft, TellClosed, AskToStart, Tell, TellOut, Serve, EndCancelled, Fail, Sleep>;

struct Step {
  State state;
  std::vector<Action> actions;
};

struct Setup {
  Request request;
  std::vector<std::string> hosts;
  bool has_lab = false;              ///< the site has a lab queue
  bool is_near = false;              ///< the request names a path (--near)
  std::optional<SteadyTime> wait{};  ///< as State::wait
};

Step begin(Setup setup, SteadyTime now);
Step next(State state, const TimedEvent& event);

}  // namespace berth::hosts::caller
