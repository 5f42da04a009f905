#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/record.h"
#include "berth/lab_queue/model/agent_entry.h"
#include "berth/lab_queue/model/lab_copy.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/machines/host.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/site_policy.h"

// The agent's part in the queue of a lab (docs/store-protocol.md), as a pure step: what requests
// and the store say goes in, and what to do comes out. The loop
// (src/lab/lab_queue/lab_agent.cpp) does that and passes the answers back in.
//
// The agent asks the store one thing at a time, in rounds: it shows that it is there, removes the
// entries of requests that have ended, brings its copy up to date, writes each request that is not
// in the store as it should be, and tells the requests what has become of them. The copy may be a
// moment old, so each change has a condition.
namespace berth::lab_queue::lab_agent {

using ClientId = std::uint64_t;

/// Somebody on this machine, as the kernel says.
struct Client {
  std::int64_t pid = 0;
  std::uint32_t uid = 0;
  std::optional<QueueEntry> entry{};  ///< none: it has not asked for one
  bool wants_status = false;
  std::optional<std::size_t> wants_queue{};  ///< from this position of it on
};

// What the store is asked. It is asked nothing while the agent rests.

struct Rests {};
/// To show that this machine is there.
struct Appears {};
/// To remove the entry of a request that has ended.
struct Removes {
  std::string id;
};
/// To write new requests before all keys are read. Then they have their entries at once, and the
/// reading has all requests that are earlier.
struct Registers {
  std::deque<ClientId> rest{};
};
/// For what the copy does not have.
struct Reads {};
/// To write a request as it should be.
struct Settles {
  /// The host on which a start is written, or given back.
  struct Puts {};
  struct Starts {
    std::string host;
  };
  struct TakesBack {
    std::string host;
  };
  using Purpose = std::variant<Puts, Starts, TakesBack>;

  std::deque<ClientId> rest{};  ///< those that come next
  ClientId now = 0;
  Purpose purpose{};
};
using Round = std::variant<Rests, Appears, Removes, Registers, Reads, Settles>;

/// The queue, as it is shown to people.
struct Board {
  std::vector<LabStanding> shown{};
  std::optional<SteadyTime> shown_at{};
  bool has_news = true;  ///< that were not shown yet
};

struct Settings {
  std::string name;     ///< of this machine in the store
  std::string machine;  ///< its own name
  QueueOrder order = QueueOrder::fifo;
  SiteLimits limits{};
  /// Of the lab, without their users. Empty: the site names none, and each host counts as one.
  std::set<std::string, std::less<>> hosts{};
  bool shows = false;  ///< the queue to people who do not ask for it
};

struct State {
  Settings settings;
  std::map<ClientId, Client> clients{};
  Round round{};
  bool again = false;                   ///< what this round has found is old: another follows at once
  std::optional<SteadyTime> renewal{};  ///< of the presence of this machine; none: the store lacks it
  std::string fault{};                  ///< why the store does not answer; "": it does
  unsigned faults = 0;                  ///< since the last whole round
  std::set<std::string, std::less<>> removals{};  ///< ids of tickets whose requests have ended
  std::map<std::string, SteadyTime, std::less<>> silent_since{};  ///< homes whose heartbeat is not there
  /// Since when it has seen without a break which homes are silent. none: it does not look.
  std::optional<SteadyTime> looks_since{};
  JoinPatience patience{};
  WriteAllowance allowance{};
  bool has_put_off = false;      ///< a change waits until its user may write again
  std::optional<Board> board{};  ///< none: the queue is shown to nobody
  SteadyTime began{};
  SteadyTime needed{};                   ///< what the store has, by somebody here, the last time
  std::optional<SteadyTime> sweep_at{};  ///< when to look for tickets that belong to nobody here
};

State begin(Settings settings, SteadyTime now);

/// What the step goes by. Not kept.
struct StepInput {
  SteadyTime now;
  WeekMinute hour{};  ///< only where limits differ by the hour
  const lab_queue::LabCopy& store;
  bool is_unread = false;  ///< the copy has nothing, and nobody has begun to read
  std::string_view url{};  ///< of the member of the store that is asked
};

// What has happened.

struct Came {
  ClientId client = 0;
  std::int64_t pid = 0;
  std::uint32_t uid = 0;
};
/// One line, without its end.
struct Said {
  ClientId client = 0;
  std::string line;
};
struct Ended {
  ClientId client = 0;
};
/// The answer to AskLimits.
struct LimitsKnown {
  ClientId client = 0;
  Asker asker;
};
/// The copy has changed, or has to be compared with the store.
struct News {};
/// The moment of Rest has come, and the store is asked nothing.
struct Woke {};

/// The answer to Appear.
struct IsPresent {
  SteadyTime renewal{};
};
/// The answer to Change: whether its conditions held. If they did, the copy has the change.
struct Changed {
  bool made = false;
};
/// The answer to Read. False: a part of the keys was read so far.
struct IsRead {
  bool all = false;
};
/// The answer to any of these. The store may do, or have done, what it was asked all the same.
struct NotAnswered {
  std::string why;
};
using Event =
    std::variant<Came, Said, Ended, LimitsKnown, News, Woke, IsPresent, Changed, IsRead, NotAnswered>;

// What to do.

/// Say one line to the client.
struct Tell {
  ClientId client = 0;
  std::string line;
};
/// End the connection, when what was said has gone. It is forgotten already.
struct Dismiss {
  ClientId client = 0;
};
/// Ask the name service whose limits apply, as long as the client is there. It may never answer.
struct AskLimits {
  ClientId client = 0;
  std::uint32_t uid = 0;
};
/// Show the store that this machine is there, anew if it has lost what it had.
struct Appear {
  bool anew = false;
};
struct Change {
  lab_queue::LabChange change;
};
/// Bring the copy up to date. The store is asked if there is a doubt, or if `in_any_case`.
struct Read {
  bool in_any_case = false;
};
/// Nobody needs the copy.
struct Forget {};
/// Ask another member of the store from now on.
struct AskAnother {};
/// Write a line for the admin.
struct Log {
  std::string line;
};
/// Show the first ones who stand in the queue of a host.
struct Show {
  std::vector<LabStanding> standing;
};
/// Come back at this moment, unless something else is to be done before.
struct Rest {
  SteadyTime until{};
};
/// At most one of a step is a question to the store, or Rest, and it is the last.
using Action =
    std::variant<Tell, Dismiss, AskLimits, Appear, Change, Read, Forget, AskAnother, Log, Show, Rest>;

/// The state is changed where it is: if memory runs out, the entries of all who wait are
/// still there.
std::vector<Action> next(State& state, const StepInput& given, const Event& what);

}  // namespace berth::lab_queue::lab_agent
