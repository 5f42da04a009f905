#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "berth/base/record.h"

// How much a hub reads and keeps of what its agents tell.
namespace berth::hub {

/// How much of an agent's answer is read, in bytes, if there are this many agents. It is enough for
/// a machine with hundreds of processes.
std::size_t most_of_answer(std::size_t agents);

/// How much memory all hosts together may take. Half of it is divided into equal shares; the other
/// half is for hosts that need more than their share.
class HostShares {
 public:
  explicit HostShares(std::size_t hosts);
  /// How much a host takes of the common half.
  std::size_t beyond_share(std::size_t entry_bytes) const;
  /// Whether there is room for this entry, if the other hosts take `others_beyond` of the common
  /// half.
  bool has_room(std::size_t entry_bytes, std::size_t others_beyond) const;

 private:
  std::size_t share_;
};

// How often a hub asks its agents.

/// The first time, all agents are asked at once. Then this pause spreads them over the interval, so
/// that work and traffic are even. `index`: of an agent among `count`.
std::chrono::nanoseconds pause_before_second(std::chrono::nanoseconds every, std::size_t index,
                                             std::size_t count);

/// How long to wait before asking a host again that did not answer `failures` times in a row.
/// `chance`: from 0 up to 1, so that hosts that failed at the same time are not asked at the same
/// time.
std::chrono::milliseconds pause_after(std::chrono::milliseconds every, unsigned failures, double chance);

}  // namespace berth::hub

// A hub, as a pure step: what has happened goes in, and what to do next comes out. The loop
// (src/show/hub/hub.cpp) does that and passes the results back in.
//
// The step says when each host is asked, whether what it told is taken, and when a page is made of
// all. What a host told is the loop's: the step knows how long it is and whether it is new.
namespace berth::hub::poller {

/// A host as the settings name it. If its address or its token changes, it is another host. No
/// number is given twice.
using HostId = std::uint64_t;

// What a host last was.

/// Nothing has come of it.
struct Unheard {};
struct Up {
  std::string tag;  ///< of its last answer; "": that had none
};
struct Down {
  unsigned failures = 1;  ///< in a row
};
using Reachability = std::variant<Unheard, Up, Down>;

/// What is shown of a host.
struct Row {
  Reachability standing{};
  std::size_t entry_bytes = 0;
  bool lack_is_told = false;  ///< the admin knows, since it was last up, that memory lacks for its answers
};

// How a host comes to tell something.

/// It is not asked, and its row says why.
struct HostRefused {};

/// Nothing that it has published is in work.
struct Idle {};
struct InWork {};
/// It has published something newer than what is in work.
struct Overtaken {};
/// The machine of the hub: its agent publishes by itself.
struct Own {
  Row row{};
  std::variant<Idle, InWork, Overtaken> turn{};
};

struct Resting {
  SteadyTime until;
};
/// It was asked, and its answer has not come, or is in work.
struct Asking {
  SteadyTime since;
};
enum class ConnectionAge {
  fresh,  ///< is made for the next question: certificates were read since it was made, or it is at fault
  kept,
};
struct Far {
  Row row{};
  std::variant<Resting, Asking> turn{};
  ConnectionAge connection = ConnectionAge::fresh;
  std::optional<SteadyTime> second{};  ///< when it is asked for the second time; nullopt: it was
};

using PolledHost = std::variant<HostRefused, Own, Far>;

// How far what is new has come to the clients.

/// They have all.
struct AllTold {};
/// A page is made then, of all that is new until then.
struct Gathering {
  SteadyTime until;
};
enum class News { none, some, urgent };
struct Making {
  std::uint64_t number = 0;
  News since = News::none;  ///< what has come since
};
using Publication = std::variant<AllTold, Gathering, Making>;

struct State {
  std::map<HostId, PolledHost> hosts{};
  Publication publication{};
  std::uint64_t number = 0;        ///< of the last event that clients are told of
  std::uint64_t published = 0;     ///< number of the last page that was published
  std::uint64_t queue_number = 0;  ///< of the event that tells the lab queue; 0: nobody has told it
  std::uint64_t answered = 0;      ///< questions that were answered
  std::uint64_t failed = 0;        ///< questions that were not
  std::chrono::milliseconds every{};
  bool own_has_published = false;
};

// What has happened. What comes of a host that is not wanted any more changes nothing.

enum class Kind { refused, own, far };
struct WantedHost {
  HostId id = 0;
  Kind kind = Kind::far;
};
/// The settings were read: these hosts, and no others, are shown from now on.
struct Applied {
  std::vector<WantedHost> hosts;
  std::chrono::milliseconds every;
};
/// The answer to AskAt.
struct Due {
  HostId host = 0;
};
/// The answer to Ask, ReadOwn and Refuse: what the host has told, or why it has not.
struct HostRead {
  HostId host = 0;
  bool is_up = false;
  bool has_new_report = false;
  std::size_t entry_bytes = 0;       ///< of its row; 0: nothing in it is new but when it was seen
  std::optional<std::string> tag{};  ///< nullopt: that of the answer before holds
};
/// The same: an answer came, and could not be worked out.
struct Unreadable {
  HostId host = 0;
  std::string why;
};
/// The same: memory ended in between.
struct AnswerLost {
  HostId host = 0;
};
/// The agent of this machine has published.
struct OwnPublished {};
/// The lab queue has changed.
struct LabQueueChanged {};
/// The answer to PublishAt.
struct PageDue {};
/// The answers to MakePage and MakePageNow.
struct Made {
  std::uint64_t number = 0;
};
struct NotMade {
  std::uint64_t number = 0;
  std::string why;
};
using Event = std::variant<Applied, Due, HostRead, Unreadable, AnswerLost, OwnPublished, LabQueueChanged,
                           PageDue, Made, NotMade>;
struct TimedEvent {
  SteadyTime now;
  double chance = 0;  ///< from 0 up to 1
  Event what;
};

// What to do.

/// Ask the host now. Its answer is read beside the loop.
struct Ask {
  HostId host = 0;
  ConnectionAge connection = ConnectionAge::kept;
  std::string tag;  ///< the answer that is shown has it; "": it has none
};
/// Instead of any earlier time.
struct AskAt {
  HostId host = 0;
  SteadyTime at;
};
/// Read, beside the loop, what the agent of this machine has published.
struct ReadOwn {
  HostId host = 0;
};
/// Show this error instead of what the host has told. What was shown before stays beside it.
struct Refuse {
  HostId host = 0;
  std::string why;
};
/// Note when it was seen. Nothing else is new.
struct Keep {
  HostId host = 0;
};
/// Show what was read, as the event of this number.
struct Post {
  HostId host = 0;
  std::uint64_t number = 0;
};
/// Forget the host, and ask it no more.
struct Drop {
  HostId host = 0;
};
/// Instead of any earlier time.
struct PublishAt {
  SteadyTime at;
};
/// Make the page of all hosts, as they are now, beside the loop.
struct MakePage {
  std::uint64_t number = 0;
};
/// The same, before anything else is done.
struct MakePageNow {
  std::uint64_t number = 0;
};
/// Publish the page that was made.
struct Publish {
  std::uint64_t number = 0;
};
/// Tell the admin. `host`: of whom that is; nullopt: of the hub.
struct Log {
  std::optional<HostId> host;
  std::string what;
};
using Action = std::variant<Ask, AskAt, ReadOwn, Refuse, Keep, Post, Drop, PublishAt, MakePage, MakePageNow,
                            Publish, Log>;

/// In place: if memory ends in a step, the hub keeps what it knows.
std::vector<Action> next(State& state, const TimedEvent& event);

}  // namespace berth::hub::poller
