// Long, since one class does all that the step of a request asks for, with the same few members.
#include "berth/lease/session.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <ranges>
#include <set>
#include <thread>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/lease/look.h"
#include "berth/queue/acquisition.h"
#include "berth/queue/gate_decision.h"
#include "berth/queue/schedule.h"
#include "berth/site/site_file.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/verdict/verdict.h"

namespace berth::leasing {
namespace {

using namespace acquisition;

// Shorter ones are pauses between two looks.
constexpr std::chrono::milliseconds kLongSleep{100};
// For each process that has the lock of safe_gpu: a start of CUDA takes it no longer.
constexpr std::chrono::milliseconds kSafeGpuPatience = 2 * kUntilUsedAtMost;
// For all of them in a row.
constexpr auto kSafeGpuPatienceInAll = 5 * kSafeGpuPatience;
// A wait inside the kernel could not be bounded without a timer's signal.
constexpr std::chrono::milliseconds kTryLockAgain{20};

// Whether it was the driver that failed, of all that a look asks.
class NotingSource : public source::Source {
 public:
  explicit NotingSource(source::Source& asked) : asked_(asked) {}

  Result<Snapshot> read(ReadingSet readings) override {
    return read_beside(readings, [] {});
  }
  Result<Snapshot> read_beside(ReadingSet readings, const std::function<void()>& meanwhile) override {
    auto snapshot = asked_.read_beside(readings, meanwhile);
    failed_ = !snapshot;
    return snapshot;
  }
  bool failed() const { return failed_; }

 private:
  source::Source& asked_;
  bool failed_ = false;
};

// Does what `next` says, and tells it what came of it.
class Acquirer {
 public:
  Acquirer(const SourceAccess& source, store::LeaseStore& store, const Request& request,
           const LookOptions& options, const TicketWords& words, const Patience& patience,
           const OnWait& on_wait)
      : source_(source),
        store_(store),
        words_(words),
        on_wait_(on_wait),
        options_(options),
        state_(begin(request, patience)) {
    options_.books = store::Extent::leases;
    options_.also |= readings_in_case_of_choice(request);
    if (words.host) options_.requester = words.host;
    if (options_.policy.queue.expect == Expect::runs && words.earlier_runs)
      earlier_runs_ = words.earlier_runs();
  }

  Result<Acquired> run() {
    Action action = after(RequestBegun{});
    for (;;) {
      BERTH_LET(auto done, std::visit([this](const auto& each) { return perform(each); }, action));
      if (auto* acquired = std::get_if<Acquired>(&done)) return std::move(*acquired);
      if (auto* next = std::get_if<Action>(&done))
        action = std::move(*next);
      else
        action = after(std::get<Event>(std::move(done)));
    }
  }

 private:
  // Action: the step was told what came of it already, and has said what is next.
  using Done = Result<std::variant<Event, Action, Acquired>>;

  Action after(Event what) {
    Step step = next(std::move(state_), {now(), std::move(what)});
    state_ = std::move(step.state);
    return std::move(step.action);
  }

  std::chrono::milliseconds now() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began_);
  }

  Done perform(const Look& wanted) {
    options_.locks = wanted.locks;
    if (own_ || is_hindered(state_)) {
      auto& excluded = options_.policy.excluded;
      auto news = exclusions_.next(!excluded.empty());
      if (!news && wanted.by_news) {
        // That may last for days, and the admin may want to reload the driver meanwhile.
        source_.close();
        return Event(NoNews{});
      }
      if (news) excluded = *std::move(news);
    }
    if (wanted.fresh) source_.close();
    const auto opened = source_.open();
    if (!opened) return LookFailed{opened.error(), true};
    NotingSource source(**opened);
    auto seen = look_and_note(source);
    // An admin may have closed the directory for a moment, or this process may be short of files:
    // no place in the queue is lost by that.
    if (!seen) return LookFailed{seen.error(), source.failed() || (own_ && seen.error().os_error != 0)};
    return *std::move(seen);
  }

  Result<Looked> look_and_note(source::Source& source) {
    changes_ = store_.lease_changes();
    const std::int64_t changes = may_be_given_away() ? changes_ : 0;
    BERTH_LET(auto before, store_.look(store::Extent::leases));
    BERTH_LET(world_, look(source, store_, state_.request, options_));
    // A machine on which the request makes no sense any more is for the pure step to judge.
    if (const auto read = read_topology_for(state_.request, source, world_); !read && !own_)
      return std::unexpected(read.error());
    return Looked{std::move(world_.facts), std::move(world_.ledger), {std::move(before.ledger), changes}};
  }

  // In the queue nobody else is given a candidate of ours, but by rules that let others pass.
  bool may_be_given_away() const { return !own_ || options_.policy.queue.lets_others_pass(); }
  std::int64_t lease_changes() { return may_be_given_away() ? store_.lease_changes() : 0; }

  Done perform(const Join& wanted) {
    if (own_) own_->release();
    candidates_ = wanted.candidates;
    const auto draining = draining_leases(state_.look.facts, state_.look.ledger, *options_.processes);
    const Ticket mine = draft(wanted.candidates);
    auto entered =
        store_.join(mine, decision(), {limit_at_gate(state_.patience, now()), may_need_all_tickets(mine)});
    BERTH_LET(auto joined, as_the_end_of_a_wait(std::move(entered)));
    own_ = std::move(joined.own);
    store_.sweep(draining);
    return left_gate(joined.outcome);
  }

  Done perform(const EnterGate&) {
    changes_ = store_.lease_changes();
    if (may_need_all_tickets(own_->ticket())) own_->read_ahead();
    auto entered = own_->decide(decision(), limit_at_gate(state_.patience, now()));
    BERTH_LET(const auto decided, as_the_end_of_a_wait(std::move(entered)));
    return left_gate(decided);
  }

  // In these orders no ticket can be left out if enough is free for this one.
  bool may_need_all_tickets(const Ticket& mine) const {
    return may_go_past(mine) && is_enough_free(mine, state_.look.ledger, state_.look.facts, state_.request);
  }

  template <class T>
  Result<T> as_the_end_of_a_wait(Result<T> entered) const {
    const auto& limit = state_.patience.limit;
    if (!entered && entered.error().code == ErrorCode::not_now && state_.patience.wait && limit &&
        now() >= *limit)
      entered.error().code = ErrorCode::timed_out;
    return entered;
  }

  LeftGate left_gate(const Decided& decided) const {
    return {decided, std::holds_alternative<Stayed>(decided) && own_->is_far_back()};
  }

  // Runs in the store, where others are kept waiting: nothing here asks the driver or a directory
  // service.
  store::Decide decision() {
    return [this](const Ledger& ledger, TicketId me) -> Result<Decision> {
      std::map<TicketId, bool> looked_at;
      std::set<TicketId> stopped = stopped_before(ledger, me, looked_at);
      for (;;) {
        const Moment boot = sys::milliseconds_since_boot();
        auto judged = decide(std::move(state_), {ledger, me, stopped, lease_changes(), boot, now()});
        state_ = std::move(judged.state);
        const auto more = stopped_in_the_way(ledger, stopped, looked_at);
        if (more.empty()) return std::move(judged.decision);
        stopped.insert(more.begin(), more.end());
      }
    };
  }

  Done perform(const Pause& pause) {
    if (is_hindered(state_)) tell();
    std::this_thread::sleep_for(pause.period);
    return Paused{};
  }

  Done perform(const AskNames& asked) {
    UsersNamed named;
    for (const std::uint32_t uid : asked.uids) named.users[uid] = sys::user_name(uid);
    return named;
  }

  Done perform(const ReadQueue& wanted) {
    auto books = store_.look(store::Extent::everything);
    // As at a look, it may be readable soon. Until then nobody is rung.
    if (!books && books.error().os_error != 0) return QueueRead{{}, sys::milliseconds_since_boot()};
    if (!books) return std::unexpected(books.error());
    QueueRead read{std::move(books->ledger), sys::milliseconds_since_boot()};
    if (wanted.stopped) read.stopped = stopped_waiters(read.ledger, *options_.processes);
    return read;
  }

  Done perform(const Ring& wanted) {
    Rang rang;
    for (const Ticket& ticket : wanted.tickets) {
      if (is_stopped(ticket, *options_.processes)) rang.stopped.insert(ticket.id);
      // A stopped request notices it when it goes on; nobody else would tell it.
      store_.ring(ticket.id);
    }
    return rang;
  }

  Done perform(const SleepBehind& sleep) {
    ask(sleep.asked);
    tell();
    if (sleep.ends_session) source_.close();
    sys::give_back_memory();
    std::optional<Action> other;
    const auto sleep_on = [&] {
      Action action = after(look_up(sleep));
      if (action != Action(sleep)) {
        other = std::move(action);
        return false;
      }
      if (on_wait_.at_each_tick) tell();
      return true;
    };
    BERTH_LET(const auto woken, own_->sleep_behind(sleep.rival, sleep.period, sleep_on,
                                                   {sleep.uuids, sleep.leases, sleep.bell}));
    if (other) return *std::move(other);
    if (woken == Woken::tick) return look_up(sleep);
    return woken;
  }

  Ticked look_up(const SleepBehind& sleep) const {
    Ticked tick{{}, own_->is_far_back(), has_lease_changed()};
    for (const TicketId id : sleep.watched) {
      const Ticket* ticket = find_ticket(state_.look.ledger, id, TicketPhase::waiting);
      const bool passes =
          store_.is_held_back(id) || (ticket != nullptr && is_stopped(*ticket, *options_.processes));
      if (passes) tick.skipped.insert(id);
    }
    return tick;
  }

  // If its holder was killed, nothing but its lock tells it.
  bool has_lease_changed() const {
    if (store_.lease_changes() != changes_) return true;
    return may_be_given_away() && std::ranges::any_of(state_.look.ledger.tickets, [&](const Ticket& ticket) {
             return ticket.phase == TicketPhase::granted && store_.has_ended(ticket.id);
           });
  }

  Done perform(const SleepUntilReleased& sleep) {
    ask(sleep.asked);
    tell();
    std::vector<sys::Descriptor> exits;
    std::vector<int> descriptors;
    for (const std::uint32_t pid : sleep.processes) {
      exits.push_back(sys::process_exit(static_cast<pid_t>(pid)));
      if (exits.back()) descriptors.push_back(exits.back().get());
    }
    // The next release makes it the turn of this ticket, and then the time counts.
    if (sleep.period >= kLongSleep && may_go_past(own_->ticket())) own_->read_ahead();
    BERTH_LET(const auto woken,
              own_->sleep_until_released(sleep.uuids, sleep.leases, descriptors, sleep.period));
    return woken;
  }

  Done perform(const Grant& grant) {
    if (grant.by_old_facts) {
      // No place is lost by a driver that fails: the next look tells of it.
      const bool fit = still_fit().value_or(false);
      if (!fit) return wait_again() ? Done(Event(Woken::changed)) : begin_anew();
    }
    if (const Device* device = try_what_is_doubtful()) return pass_over(*device);
    LocksBeside beside;
    // A nested request is covered by the outer lease's locks of originals.
    if (!options_.within) {
      const auto holder = lock_safe_gpu(beside.until_used);
      if (holder) return wait_without_devices(*holder);
      BERTH_LET(const auto lost, keep_originals_away(beside));
      if (lost) return begin_again(*lost);
    }
    source_.close();
    std::vector<std::string> notes = std::get<Granted>(state_.decision.plan).choice.notes;
    for (const auto* more : {&beside.for_lease.notes(), &beside.until_used.notes()})
      notes.insert(notes.end(), more->begin(), more->end());
    return Acquired(HeldLease(std::move(own_), world(), std::move(notes), std::move(beside)));
  }

  /// Whether the devices, which nobody else can have now, are as the request wants them.
  Result<bool> still_fit() {
    BERTH_LET(const auto source, source_.open());
    BERTH_LET(World seen, look(*source, store_, state_.request, options_));
    std::erase_if(seen.ledger.tickets, [&mine = own_->ticket()](const Ticket& each) {
      return each.id == mine.id && each.uid == mine.uid && each.phase == TicketPhase::granted;
    });
    BERTH_LET(const auto verdicts, judge(state_.request, seen.ledger, seen.facts));
    const auto fits = [&verdicts](const std::string& uuid) {
      const auto verdict = std::ranges::find(verdicts, uuid, &Verdict::uuid);
      return verdict != verdicts.end() && verdict->free();
    };
    return std::ranges::all_of(own_->ticket().devices, fits);
  }

  /// The first granted device on which nothing starts. Those that are passed over, and were granted
  /// because no others remain, are not tried: nobody waits for a judgement alone.
  const Device* try_what_is_doubtful() {
    if (!on_wait_.try_device || options_.within) return nullptr;
    const Facts& facts = state_.look.facts;
    for (const std::string& uuid : own_->ticket().devices) {
      const Device* device = find_device(facts.snapshot, uuid);
      if (device == nullptr || !facts.bad_runs.contains(uuid) || facts.passed_over.contains(uuid)) continue;
      if (!tried_.insert(uuid).second) continue;
      const Moment begun = sys::milliseconds_since_boot();
      if (on_wait_.try_device(*device)) continue;
      // A failure that cannot be noted would be granted again.
      if (store_.note_outcome({fingerprint_of(own_->ticket().uid, words_.command),
                               begun,
                               sys::milliseconds_since_boot() - begun,
                               Ending::no_cuda,
                               {uuid}}))
        return device;
    }
    return nullptr;
  }

  Done pass_over(const Device& device) {
    // Others see that it no longer waits for this one: neither do they wait for it there, nor pass
    // it elsewhere.
    failed_.insert(device.uuid);
    if (!wait_again()) return begin_again(device.uuid);
    return Event(Woken::changed);
  }

  /// The devices go back, and the request waits in its old place.
  Result<void> wait_again() {
    std::vector<std::string> others = candidates_;
    std::erase_if(others, [this](const std::string& uuid) { return failed_.contains(uuid); });
    if (others.size() < state_.request.count) others = candidates_;
    return own_->wait_again(std::move(others), limit_at_gate(state_.patience, now()));
  }

  /// The process that has it, and is to be waited for. nullopt: we have it now, or go on without.
  std::optional<SafeGpuHolder> lock_safe_gpu(SafeGpuLock& lock) {
    for (;;) {
      const auto holder = lock.take(files_until_used(options_.policy.original_locks), not_waited_for_);
      if (!holder) return std::nullopt;
      if (!safe_gpu_holder_ || safe_gpu_holder_->first != *holder) safe_gpu_holder_.emplace(*holder, now());
      if (!safe_gpu_since_) safe_gpu_since_ = now();
      if (now() < safe_gpu_holder_->second + kSafeGpuPatience &&
          now() < *safe_gpu_since_ + kSafeGpuPatienceInAll)
        return holder;
      not_waited_for_.push_back(*holder);
    }
  }

  /// Others may have the devices meanwhile; this request keeps its place.
  Done wait_without_devices(const SafeGpuHolder& holder) {
    if (is_over()) {
      own_->release();
      return fail(ErrorCode::timed_out, "gave up after {}: {}", duration_for_people(*state_.patience.limit),
                  in_words(holder));
    }
    if (!wait_again()) return begin_anew();
    state_.standing.ticket = own_->ticket();
    state_.standing.hindrance = in_words(holder);
    tell();
    SafeGpuLock lock;
    while (lock.take(files_until_used(options_.policy.original_locks), not_waited_for_) == holder &&
           !is_over() && now() < safe_gpu_holder_->second + kSafeGpuPatience)
      std::this_thread::sleep_for(kTryLockAgain);
    state_.standing.hindrance.clear();
    return Event(Woken::changed);
  }

  bool is_over() const {
    return state_.patience.wait && state_.patience.limit && now() >= *state_.patience.limit;
  }

  /// The UUID of a device that an original has taken since we looked. nullopt: we have its locks
  /// now.
  Result<std::optional<std::string>> keep_originals_away(LocksBeside& beside) {
    const auto& rows = options_.policy.original_locks;
    if (beside.until_used) {
      // The process that had the lock may have chosen one of our devices meanwhile.
      BERTH_LET(auto taken, used_by_outsider());
      if (taken) return taken;
    }
    return beside.for_lease.take(rows, own_->ticket().devices, state_.look.facts.snapshot, state_.look.ledger,
                                 own_->ticket().id);
  }

  Result<std::optional<std::string>> used_by_outsider() {
    BERTH_LET(const auto source, source_.open());
    BERTH_LET(const World seen, look(*source, store_, state_.request, options_));
    for (const std::string& uuid : own_->ticket().devices) {
      const Device* device = find_device(seen.facts.snapshot, uuid);
      const auto leases = leases_on(seen.ledger, uuid);
      const auto outsiders = device == nullptr || !device->processes
                                 ? 0
                                 : std::ranges::count_if(*device->processes, [&](const Process& process) {
                                     return is_outsider(process, leases, seen.facts);
                                   });
      if (std::cmp_greater(outsiders, state_.request.allowed_processes)) return uuid;
    }
    return std::nullopt;
  }

  // An original has locked the device since we looked. Until something happens it is asked for no
  // more.
  Done begin_again(const std::string& lost) {
    auto done = begin_anew();
    state_.tries.refused.insert(lost);
    return done;
  }

  Done begin_anew() {
    own_->release();
    own_.reset();
    state_.patience.is_requeued = true;
    state_ = begin(std::move(state_.request), state_.patience);
    return Event(RequestBegun{});
  }

  Done perform(const Refuse&) {
    if (own_) own_->release();
    source_.close();
    Standing standing = std::move(state_.standing);
    return Acquired(RequestRefused{world(), std::move(standing), state_.patience.wait && own_ != nullptr});
  }

  Done perform(const Fail& failed) { return std::unexpected(failed.error); }

  World world() {
    world_.facts = std::move(state_.look.facts);
    world_.ledger = std::move(state_.look.ledger);
    return std::move(world_);
  }

  void ask(const std::vector<TicketId>& leases) const {
    for (const TicketId id : leases) store_.ring(id);
  }

  void tell() const {
    if (on_wait_.call) on_wait_.call(state_.standing, state_.look.facts.snapshot);
  }

  // Each process is looked at once a decision.
  bool is_stopped_now(const Ticket& ticket, std::map<TicketId, bool>& looked_at) const {
    const auto [place, is_new] = looked_at.try_emplace(ticket.id, false);
    if (is_new) place->second = is_stopped(ticket, *options_.processes);
    return place->second;
  }

  std::set<TicketId> stopped_before(const Ledger& ledger, TicketId me,
                                    std::map<TicketId, bool>& looked_at) const {
    std::set<TicketId> stopped;
    const Ticket* mine = find_ticket(ledger, me, TicketPhase::waiting);
    if (mine == nullptr) return stopped;
    const Moment boot = sys::milliseconds_since_boot();
    for (const auto& line : {rivals_before(*mine, ledger, boot), guards_before(*mine, ledger)}) {
      for (const Ticket* rival : std::views::reverse(line)) {
        if (!is_stopped_now(*rival, looked_at)) break;
        stopped.insert(rival->id);
      }
    }
    return stopped;
  }

  // The stopped tickets that could have what is free.
  std::set<TicketId> stopped_in_the_way(const Ledger& ledger, const std::set<TicketId>& known,
                                        std::map<TicketId, bool>& looked_at) const {
    const auto* behind = std::get_if<Behind>(&state_.decision.plan);
    if (behind == nullptr) return {};
    std::set<TicketId> stopped;
    for (const TicketId id : behind->in_the_way) {
      const Ticket* ticket = find_ticket(ledger, id, TicketPhase::waiting);
      if (ticket != nullptr && !known.contains(id) && is_stopped_now(*ticket, looked_at)) stopped.insert(id);
    }
    return stopped;
  }

  Ticket draft(const std::vector<std::string>& candidates) {
    Ticket draft = ticket_for(state_.request);
    const UniqueProcess self = sys::unique_process(::getpid());
    draft.taker = words_.host ? sys::unique_process(static_cast<pid_t>(*words_.host)) : self;
    if (draft.taker != self) draft.helper = self;
    draft.kept = words_.kept;
    if (const auto job = words_.job ? options_.processes->stat(*words_.job) : std::nullopt)
      draft.job = job->process;
    draft.slurm_job = words_.slurm_job;
    draft.origin = words_.origin;
    // Which number it gets, the store knows when it joins.
    if (has_numbers(options_.policy.queue.order)) draft.number = OrderNumber{options_.policy.queue.order};
    if (earlier_runs_) lasted_s_ = std::exchange(earlier_runs_, nullptr)();
    note_expectation(draft, lasted_s_, options_.policy.queue, words_.limit_holds);
    draft.candidates = candidates;
    draft.command = words_.command;
    draft.note = words_.note;
    draft.request = words_.request;
    return draft;
  }

  const SourceAccess& source_;
  store::LeaseStore& store_;
  const TicketWords& words_;
  std::function<std::vector<Moment>()> earlier_runs_;  ///< until it joins
  std::vector<Moment> lasted_s_;
  const OnWait& on_wait_;
  LookOptions options_;
  site::ExclusionNews exclusions_{options_.site_files};
  State state_;
  World world_;                           ///< what of the last look is not in the state
  std::int64_t changes_ = 0;              ///< of the leases, before the last look or decision
  std::vector<std::string> candidates_;   ///< UUIDs, of the last join
  std::set<std::string> tried_, failed_;  ///< UUIDs
  /// The process that has the lock of safe_gpu, and since when we wait for it.
  std::optional<std::pair<SafeGpuHolder, std::chrono::milliseconds>> safe_gpu_holder_;
  std::optional<std::chrono::milliseconds> safe_gpu_since_;  ///< since when for any of them
  std::vector<SafeGpuHolder> not_waited_for_;                ///< any more
  std::unique_ptr<store::OwnTicket> own_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

HeldLease::HeldLease(std::unique_ptr<store::OwnTicket> own, World world, std::vector<std::string> notes,
                     LocksBeside beside)
    : own_(std::move(own)), beside_(std::move(beside)), world_(std::move(world)), notes_(std::move(notes)) {}

// The ticket's descriptor is last, as store/lease_directory.h expects.
std::vector<int> HeldLease::descriptors() const {
  std::vector<int> all = beside_.for_lease.descriptors();
  const std::vector<int> own = own_->descriptors();
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<const Device*> HeldLease::devices() const {
  std::vector<const Device*> found;
  for (const std::string& uuid : ticket().devices) {
    if (const Device* device = find_device(world_.facts.snapshot, uuid)) found.push_back(device);
  }
  return found;
}

std::string HeldLease::labels() const {
  return device_labels(ticket().devices, world_.facts.snapshot);
}

std::string HeldLease::short_name() const {
  return berth::short_name(world_.ledger, ticket().id);
}

Result<Acquired> acquire_by_queue(const SourceAccess& source, store::LeaseStore& store,
                                  const Request& request, const LookOptions& options,
                                  const TicketWords& words, const Patience& patience, const OnWait& on_wait) {
  return Acquirer(source, store, request, options, words, patience, on_wait).run();
}

Result<Acquired> acquire(source::Source& source, store::LeaseStore& store, const Request& request,
                         const LookOptions& options, const TicketWords& words) {
  const SourceAccess access{[&source]() -> Result<source::Source*> { return &source; }, [] {}};
  return acquire_by_queue(access, store, request, options, words, {}, {});
}

}  // namespace berth::leasing
