// Long, since it is the whole of what others need to know to ask whose turn it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

// Decides which tickets of a queue start now, which have a reservation and from when, and which
// wait behind which. It is EASY backfill (Lifka, 1995) for requests that compete for only a part of
// the devices: the first that cannot start has a reservation, and a later one may start before it
// if that does not delay it. Where run times count, the first three have one each.
namespace berth {

/// Whether a hold ends before its time if somebody waits for it.
enum class Leaves {
  in_time,     ///< no
  when_asked,  ///< as soon as a request that does not yield could start by that
  anyhow,      ///< it is about to end, whoever waits
};

/// What a lease or a reservation has of a device, or will have.
struct Hold {
  std::size_t device = 0;
  Moment from = 0;
  Moment until = kNever;  ///< expected end; kNever: not known
  bool whole = true;
  std::uint64_t bytes = 0;  ///< if it is a part
  TicketId owner{};         ///< the lease that has it; none: no lease
  Leaves leaves = Leaves::in_time;
  Moment left_by = kNever;  ///< unless in_time: if it is asked now, it has ended by then

  bool operator==(const Hold&) const = default;
};

/// A waiting ticket, with what the order of the queue depends on.
struct Wish {
  TicketId id;
  std::uint32_t uid = 0;
  std::size_t candidates = 0;  ///< the index of its set in QueueState::sets
  unsigned count = 1;
  bool shared = false;
  std::uint64_t bytes = 0;         ///< of each device, if a part of it is enough
  std::optional<Moment> length{};  ///< its time limit
  /// Without a time limit: for how long the devices are kept for it. nullopt: for what is assumed.
  std::optional<Moment> likely{};
  /// How long it is expected to last, for the order of turns alone. nullopt: it does not know that
  /// order.
  std::optional<Moment> expected{};
  Moment since = 0;                     ///< when it came, if it is expected to last for some time
  Moment longest_wait = kNever;         ///< having waited so long, it has its turn first if it came first
  bool yields = false;                  ///< it starts when the wishes that do not yield leave it room
  std::optional<OrderNumber> number{};  ///< as Ticket::number
  /// It is stopped, or its own conditions hold it back. It counts as if it did not wait, and keeps
  /// its place.
  bool skipped = false;

  bool operator==(const Wish&) const = default;
};

/// A queue and the devices that it waits for; devices are named by their indices.
struct QueueState {
  Moment now = 0;
  Moment second = 1;                             ///< so many moments are a second
  std::vector<std::uint64_t> room_bytes{};       ///< for each device: the memory for parts if nobody has any
  std::vector<std::vector<std::size_t>> sets{};  ///< sets of candidates, each ascending
  std::vector<Hold> holds{};
  std::vector<Wish> wishes{};  ///< in the order of their turns
};

struct StartsNow {
  std::vector<std::size_t> devices;
  bool operator==(const StartsNow&) const = default;
};
/// No later request delays it.
struct ReservedFrom {
  Moment from =
      0;  ///< now: it starts as soon as those that leave have left, and is kept what is free already
  std::vector<std::size_t> devices;
  bool operator==(const ReservedFrom&) const = default;
};
struct WaitsBehind {
  std::optional<TicketId> rival;  ///< the last one before it; nullopt: it waits for something whose end
                                  ///< nobody knows
  bool operator==(const WaitsBehind&) const = default;
};
using Assignment = std::variant<StartsNow, ReservedFrom, WaitsBehind>;

/// The turn of each wish, in the order of the queue. Pure. A wish starts if it is not skipped
/// and could start without delaying a reservation; of two with the same request, the one that came
/// first. As long as no lease lasts longer than expected, no later wish moves a reservation to a
/// later time. A reservation does not wait for what leaves: from the moment at which this is all
/// that is missing, its devices are kept for it.
std::vector<Assignment> schedule(const QueueState& queue, const QueueRules& rules);
/// So many rivals that cannot start have a reservation, where run times count.
inline constexpr std::size_t kReservationsByRunTimes = 3;

/// The wishes that could start now, each if those before it took nothing of what is free: their
/// indices, in the order of the queue.
std::vector<std::size_t> able_to_start(const QueueState& queue, const QueueRules& rules);

struct ExpectedStart {
  Moment from = 0;
  std::vector<std::size_t> devices{};
  bool operator==(const ExpectedStart&) const = default;
};
/// About when each wish starts and on what, in the order of the queue, if each job with a time
/// limit takes all of it. nullopt: that is not known, because a job that it waits for has no time
/// limit, or because it is behind the first kForeseen of the queue, or yields. REQUIRES: a hold
/// without a time limit never ends (kNever).
std::vector<std::optional<ExpectedStart>> expected_starts(const QueueState& queue, const QueueRules& rules);
inline constexpr std::size_t kForeseen = 100;

/// What the wish has of the devices, or will have, with this turn.
std::vector<Hold> holds_of(const QueueState& queue, const Wish& wish, const Assignment& assignment,
                           const QueueRules& rules);

/// Whether two holds have the same device at the same time.
bool meet(const Hold& a, const Hold& b);

// What has gone on for long goes on for longer still: run times have no typical size. Of those
// tried on published ones, this factor makes the queue wait least where half say how long they take
// and half do not.
inline constexpr Moment kLonger = 3;

/// When a lease that began at `since` with the time limit `length` is expected to end; later than
/// `now`. If its time limit is over, it ends soon. If it has none and has lasted longer than is
/// assumed, or than is `likely` for it, it is expected to go on for kLonger times as long as it has
/// lasted so far. `second`: how many moments a second has.
Moment expected_end(Moment since, std::optional<Moment> length, Moment now, const QueueRules& rules,
                    Moment second = 1, std::optional<Moment> likely = {});

// How long a request is expected to last, by its time limit and by earlier runs of the same thing.
// An expectation never ends a command.

/// In seconds.
struct Expectation {
  Moment expected_s = 0;             ///< as Wish::expected
  std::optional<Moment> likely_s{};  ///< as Wish::likely

  bool operator==(const Expectation&) const = default;
};

/// Within which a ticket can say what is expected of it.
inline constexpr Moment kLeastExpectedS = 60;
inline constexpr Moment kMostExpectedS = 86'400;

/// A run that was over sooner says nothing of how long the next one lasts.
inline constexpr Moment kShortestRun = 60;

/// Whether Berth ends the command at its time limit. Where it does not, a limit says no more than
/// an expectation: who gives one that is too short loses nothing by it.
enum class LimitHolds { yes, no };

/// What the rules make of a time limit and of earlier runs. nullopt: run times do not count here.
/// `lasted`: for how long the runs that count (kShortestRun) had their devices, in seconds, the
/// oldest first.
///
/// The order goes by what three of four of the last five did not exceed, or by the limit if that is
/// less, and never by less than ten minutes (a minute where only a limit is known) or more than a
/// day. So nobody gains by being shorter still, and a request that lasts for weeks waits at most as
/// if it lasted a day. Where nothing is known it goes by six hours. Without a limit, devices are
/// kept for three times what nine of ten of the last twenty runs took at most; nullopt: as the
/// rules assume. Where the rules count limits only, one that does not hold counts as none.
std::optional<Expectation> expectation_of(std::optional<Moment> limit_s, std::span<const Moment> lasted,
                                          const QueueRules& rules, LimitHolds holds = LimitHolds::yes);

/// What the expectation of a ticket goes by, as far as the ticket tells it.
enum class ExpectedBy { limit, runs, nothing };
std::string_view to_text(ExpectedBy by);  ///< "limit"
/// REQUIRES: the ticket has an expectation.
ExpectedBy expected_by(const Ticket& ticket);

/// Notes in a ticket that has not joined yet what the order of turns goes by.
void note_expectation(Ticket& draft, std::span<const Moment> lasted, const QueueRules& rules,
                      LimitHolds holds = LimitHolds::yes);

// The table of the orders of the queue: a value of QueueOrder (verdict/ledger.h) and a row of
// `order_rows`, and no more. Tickets, the store of a lab, the site file, messages, the queues of a
// machine and of a lab, and the replay walk the rows. The order by response ratio is none of them:
// it goes by expected run times, and so it is a part of each order.
//
// Two rules hold for every order and stand in queue_order alone: requests that yield come last, and
// no request goes past one of another order. An order sees only wishes that may go past each other.

/// A live ticket with a number, waiting or granted.
struct Numbered {
  std::uint32_t uid = 0;
  unsigned count = 1;
  OrderNumber number{};
  bool granted = false;
};

/// Wishes that keep one order, with none of another order between them.
struct OrderedRun {
  /// As they came, or by response ratio where run times count. All are of one array, in which they
  /// stand as they came.
  std::span<const Wish*> wishes;
  /// How many GPUs each user has, by uid, with those that wishes of earlier runs ask for. An order
  /// that goes by them adds those of this run.
  std::map<std::uint32_t, std::uint64_t>& has;
  Moment now = 0;  ///< 0 in the lab, whose hosts share no clock
};

/// How a ticket says which order it keeps. A ticket with none of the keys that a program knows
/// keeps the order of coming, as that program sees it. So a program must know either all keys of a
/// ticket or none of them: else it ranks the ticket by a part, and two may wait for each other.
struct OrderKeys {
  std::string_view number{};  ///< also in the store of a lab
  /// Where run times count: of the number, and of the time that is expected.
  std::string_view number_beside_expected{};
  std::string_view expected{};
};

/// A row of the table.
struct OrderRow {
  QueueOrder order = QueueOrder::fifo;
  std::string_view name{};   ///< in the site file, and of an option
  std::string_view first{};  ///< for people: who comes first
  OrderKeys keys{};
  /// The number of a new request of a user, from the tickets that keep this order. Of each order
  /// that has_numbers, and of no other: else the table does not compile.
  std::int64_t (*next)(std::uint32_t uid, std::span<const Numbered> others) = nullptr;
  /// Puts the wishes into the order. nullptr: they are. A function of what is given alone, so that
  /// all who ask agree.
  void (*sort)(const OrderedRun& run) = nullptr;
};

/// The table.
std::span<const OrderRow> order_rows();
const OrderRow& row_of(QueueOrder order);

/// The order that a ticket with this number keeps.
inline QueueOrder order_of(const std::optional<OrderNumber>& number) {
  return number ? number->order : QueueOrder::fifo;
}

std::string_view to_text(QueueOrder order);                       ///< as in the site file: "fifo"
Result<QueueOrder> queue_order_from_text(std::string_view text);  ///< Error: `usage`, what it must be
/// "the user who has fewer GPUs comes first"; "" for the usual order.
std::string rule_in_words(QueueOrder order);
/// "fifo (whoever came first) or fair (the user who has fewer GPUs)"
std::string orders_in_words();

/// The number for a new request of a user, given the live tickets that have one of any order.
/// nullopt: this order has no numbers.
std::optional<OrderNumber> next_number(QueueOrder order, std::uint32_t uid, std::vector<Numbered> others);
std::optional<OrderNumber> next_number(QueueOrder order, std::uint32_t uid, const Ledger& ledger);

// The order of turns, by the table of orders; and, of requests with an expected run time,
// the order by response ratio. The order is a function of the tickets and of the
// boot clock: nothing in it is of the site file, which somebody may change while they wait.

/// How many GPUs each user has, by uid.
struct GpusByUser {
  std::map<std::uint32_t, std::uint64_t> in_all;
  std::map<std::uint32_t, std::uint64_t> firmly;  ///< not counting leases that yield
};

/// As the leases of the ledger say.
GpusByUser gpus_by_user(const Ledger& ledger);

/// The places of the wishes in the order of their turns. REQUIRES: they are in the order in which
/// they came.
///
/// Wishes that yield stand behind all others. For a wish that does not yield, GPUs of leases that
/// yield do not count. Wishes with a number stand as the row of its order sorts them.
///
/// Of the wishes that are expected to last for some time, the one comes first that has waited
/// longest in relation to that time; wishes with a number are then sorted by the order of the
/// number. The wish that came first of all of its kind comes first once it has waited for its
/// `longest_wait`.
///
/// No wish goes past a wish of another order. One that has neither a number nor such a time waits
/// for the wishes that came before it, and for no others.
std::vector<std::size_t> queue_order(std::span<const Wish> wishes, const GpusByUser& has, Moment now);

/// Whether the ticket keeps another order than that of coming: it may go past an earlier one that
/// does too.
inline bool may_go_past(const Ticket& ticket) {
  return ticket.number || ticket.expected_s;
}

/// What the order goes by, in milliseconds of the boot clock. Which devices it could have is not in
/// it.
Wish wish_of(const Ticket& ticket, bool skipped);

/// The waiting tickets of the ledger in the order of their turns, with one more that is not in the
/// ledger. Tickets that are `skipped` or held back keep their places; for the turns of others
/// they count as if they did not wait.
std::vector<const Ticket*> waiting_in_order(const Ledger& ledger, const std::set<TicketId>& skipped,
                                            Moment now, const Ticket* one_more = nullptr);

/// The ids of those waiting tickets that can change what `plan` says to `mine` by no longer
/// waiting, or by being held back or not. By response ratio these are the ones that came before
/// mine, those whose turn is before mine, and those that keep others behind themselves. All others
/// have their turn behind mine, whatever becomes of them. In the other orders each ticket can.
std::set<TicketId> those_that_matter(const Ticket& mine, const std::vector<const Ticket*>& waiting,
                                     Moment now);

// The fair order: the user who has fewer GPUs comes first. Used by its row of the table alone.

/// The number of a new request of a user.
///
/// As in start-time fair queueing (Goyal, Vin and Cheng, 1996), with the number of GPUs as the
/// cost. Nobody saves up turns by not asking. A user who has just had a turn stands behind one who
/// has not, although only the live tickets are remembered.
std::int64_t next_fair_number(std::uint32_t uid, std::span<const Numbered> others);

/// The wish comes first whose user would have the fewest GPUs when it starts: those that the user
/// has, and those that the user's earlier wishes ask for. So users who have many wishes each take
/// turns. Among equals the number decides, then the order of coming. The wishes of one user stay in
/// their order. The numbers belong to the user and not to a wish: the user's first wish has the
/// lowest of them.
void sort_by_gpus_of_user(const OrderedRun& run);

// The order by response ratio (highest response ratio next, Brinch Hansen, 1971): the one comes
// first that has waited longest in relation to how long it is expected to last.

/// Among equals the order stays. REQUIRES: all are expected to last for some time.
void sort_by_response_ratio(std::span<const Wish*> wishes, Moment now);

/// Whether it has its turn first, whatever the ratios are, if it came first.
bool has_waited_longest(const Wish& wish, Moment now);

/// From when on the turn of `mine` comes before those of all these tickets, if they all go on
/// waiting and nobody comes: `now`, if it does. nullopt: it never does, or nobody can say. That is
/// so if one of them does not go by the response ratio alone. Pure.
std::optional<Moment> first_from(const Ticket& mine, const std::vector<const Ticket*>& others, Moment now);

/// The queue as ledger and facts describe it, and the devices to which its indices refer.
struct HostQueue {
  QueueState state;
  std::vector<std::string> uuids;  ///< without GPUs that are split by MIG: their instances count
};

/// The waiting tickets in order, and the leases with the devices that they hold until about when. A
/// ticket has its conditions on readings only as words for people. So each ticket counts as if it
/// had none, on the devices that are free to a request without conditions. `before`: only tickets
/// before this one. Tickets that are `skipped` count as if they did not wait.
HostQueue host_queue_of(const Ledger& ledger, const Facts& facts, Moment now,
                        const std::set<TicketId>& skipped = {}, const Ticket* before = nullptr);

/// The queue counts in milliseconds of the boot clock.
inline constexpr Moment kSecond = 1000;

/// How long it has a device, at most, by what its ticket says: its time limit, and what Berth then
/// needs to end it.
std::optional<Moment> longest_stay(const Ticket& ticket, const SitePolicy& policy);

/// The tickets whose turn it is now, except `me`, which has just found that it is not its turn. If
/// it seems to be the turn of `me`, its own conditions hold it back, and it keeps nothing from
/// others.
std::vector<TicketId> who_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                 std::set<TicketId> skipped, TicketId me);

struct ForeseenStart {
  std::int64_t boot_s = 0;  ///< in seconds of the boot clock
  std::vector<std::string> uuids{};
};

/// About when each waiter starts, and on what. Where a ticket goes by run times, its turn may come
/// before that of an earlier one, and the forecast takes that into account.
std::map<TicketId, ForeseenStart> expected_starts(const Ledger& ledger, const Facts& facts, Moment now,
                                                  const std::set<TicketId>& skipped = {});

/// Whether there is a device that no lease holds.
bool is_any_unleased(const Ledger& ledger, const Snapshot& snapshot);

/// What earlier requests leave for a ticket. The earlier requests get what `schedule` gives them,
/// now or from a moment on; without backfill, everything that they could be given.
class Gap {
 public:
  /// What is left behind all tickets whose turn is before that of `mine` and that are not
  /// `skipped`. The ticket and the facts must outlive this object.
  Gap(const Ticket& mine, const Ledger& ledger, const Facts& facts, const std::set<TicketId>& skipped,
      Moment now);

  /// Whether the ticket may have the device. The verdict says that the device is free for it.
  bool is_open(const Verdict& verdict) const;

  /// The tickets that are to have some of this device at a time when `mine` would have it, each
  /// once.
  std::vector<TicketId> owners(const Verdict& verdict) const;

 private:
  struct KeptHold {
    Hold hold;
    TicketId owner;
  };
  std::vector<const KeptHold*> in_the_way_of(const Verdict& verdict) const;

  const Ticket& mine_;
  const SitePolicy& policy_;
  HostQueue queue_;
  std::vector<KeptHold> kept_;
};

/// The ticket of a request if it were made now: it came last of all.
Ticket newcomer(const Request& request, std::vector<std::string> candidates, const Ledger& ledger,
                const Facts& facts);

/// Verdicts on the request of a newcomer. Devices that `judge` calls free but that the queue keeps
/// for an earlier request fail with Clause::not_awaited.
std::vector<Verdict> behind_the_queue(std::vector<Verdict> verdicts, const Ticket& newcomer,
                                      const Ledger& ledger, const Facts& facts,
                                      const std::set<TicketId>& skipped, Moment now);

/// It is the turn of waiting rivals: I sleep until `rival` no longer waits, or somebody rings me.
struct Behind {
  /// The rival behind which I sleep: of the rivals that came before me, the last one that waits for
  /// every device that I wait for; if none does, the last of them. If all of them came later than
  /// I, the one whose turn is right before mine.
  TicketId rival;
  /// The candidates of mine that I have to watch myself: those that `rival` does not wait for. If
  /// `rival` came later than I, all of them, since it may rely on me.
  std::vector<std::string> unguarded{};
  /// With backfill: the tickets for which devices are kept, now or later, that would be enough for
  /// me.
  std::vector<TicketId> in_the_way{};
  /// These tickets came before all that a partial ledger leaves out, so what those want changes
  /// nothing.
  bool front_suffices = false;

  bool operator==(const Behind&) const = default;
};
/// These devices are mine, if the store can lock them.
struct Granted {
  Choice choice;

  bool operator==(const Granted&) const = default;
};
/// No rival keeps me from starting now. Too few devices are free, or my own conditions or limits
/// hold me back.
struct Blocked {
  std::vector<Verdict> verdicts;
  bool held_back = false;  ///< my own conditions or limits do, so that others skip me

  bool operator==(const Blocked&) const = default;
};
using Plan = std::variant<Behind, Granted, Blocked>;

/// My waiting rivals whose turn is before mine, in the order of their turns. Those `skipped`
/// and those held back are left out.
std::vector<const Ticket*> rivals_before(const Ticket& mine, const Ledger& ledger, Moment now,
                                         const std::set<TicketId>& skipped = {});

/// My waiting rivals that came before me, in the order of coming. I may sleep behind one of these,
/// since none of them sleeps behind me. If all keep the order of coming, they are the same as those
/// of `rivals_before`.
std::vector<const Ticket*> guards_before(const Ticket& mine, const Ledger& ledger,
                                         const std::set<TicketId>& skipped = {});

/// Whether enough devices are free for the request of this ticket, whoever else waits. If so,
/// `plan` needs all tickets whose turn may be before mine.
bool is_enough_free(const Ticket& mine, const Ledger& ledger, const Facts& facts, const Request& request);

/// What the ticket `me` of the ledger should do next. Pure. Error: as `judge`; `failure` if `me`
/// does not wait. `now`: of the boot clock.
///
/// Two tickets are rivals if they have a candidate in common. The rivals whose turn is before mine
/// get what `schedule` gives them, now or from a moment on; without backfill, every device that
/// they could be given. I may take what is free beside that. Tickets that are `skipped` or held
/// back (Ticket::held_back) count as if they did not wait, and keep their place. Skipped are
/// tickets whose process is stopped: no event would end a wait for them. If I am expected to last
/// for some time and too little is free for me, the order of coming decides, whosever turn is
/// first: I sleep behind who came before me, who rings me; or I am blocked by the devices, and ring
/// others.
///
/// The ledger may be partial. `depends_on_unread` (gate_decision.h) says whether the plan holds
/// all the same.
Result<Plan> plan(const Ledger& ledger, const Facts& facts, const Request& request, TicketId me,
                  const std::set<TicketId>& skipped = {}, Moment now = 0);

}  // namespace berth
