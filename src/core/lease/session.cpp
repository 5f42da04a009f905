#include "berth/lease/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/queue/schedule.h"
#include "berth/queue/standing.h"
#include "berth/site/site_file.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/verdict/verdict.h"

namespace berth::leasing {
namespace {

Request with_seed(Request request) {
  if (request.order != Order::random || request.seed) return request;
  std::uint32_t seed = 0;
  // Where the kernel gives none, always the same choice is still a choice.
  if (!sys::fill_with_random_bytes(&seed, sizeof seed)) seed = 0;
  request.seed = seed;
  return request;
}

// A request that says no time lasts as long as the site allows, and as it allows the user by now.
Result<Request> settled(Request request, const LookOptions& options) {
  if (asks_memory_by_runs(request))
    return fail(
        ErrorCode::usage,
        "--memory auto goes by earlier runs of a command, and here it is not known which command will "
        "run: say how much (--memory 20G), or leave it out for a whole GPU");
  const SitePolicy& policy = options.policy;
  if (policy.most_time_s) {
    if (request.time_s && *request.time_s > *policy.most_time_s)
      return fail(ErrorCode::impossible,
                  "the request says {}, and a lease here lasts {} at most (time in the site file): ask "
                  "for that or less",
                  time_for_people(*request.time_s), time_for_people(*policy.most_time_s));
  }
  const auto longest = longest_lease(policy.most_time_s, limits_now(options));
  if (longest && !request.time_s) request.time_s = longest->most;
  return with_seed(std::move(request));
}

// A request with a waiting rival would wait behind it, however many devices are free.
bool meets_a_waiter(const Request& request, const World& world) {
  const auto able = candidates(request, world.facts);
  return !able || std::ranges::any_of(world.ledger.tickets, [&](const Ticket& ticket) {
    return ticket.phase == TicketPhase::waiting &&
           std::ranges::any_of(*able, [&](const std::string& uuid) { return is_candidate(ticket, uuid); });
  });
}

std::vector<std::string> looser_requests(const Request& request, const World& world) {
  std::vector<std::string> changes;
  for (Suggestion& each : loosen(request, world.ledger, world.facts))
    if (!meets_a_waiter(each.request, world)) changes.push_back(std::move(each.change));
  return changes;
}

/// The verdicts on a request that is made now, after what the queue keeps for others.
Result<std::vector<Verdict>> judge_behind_the_queue(const Request& request, const World& world) {
  BERTH_LET(auto verdicts, judge(request, world.ledger, world.facts));
  return behind_the_queue(std::move(verdicts), newcomer(request, {}, world.ledger, world.facts), world.ledger,
                          world.facts, world.stopped, world.looked_at);
}

/// How a request that is made now would stand in the queue.
Result<std::optional<Standing>> standing_of_newcomer(const Request& request, const World& world) {
  if (count_waiting(world.ledger) == 0) return std::nullopt;
  BERTH_LET(auto able, candidates(request, world.facts));
  return standing_behind(newcomer(request, std::move(able), world.ledger, world.facts), world.ledger,
                         world.facts, world.stopped, world.looked_at);
}

/// About when a request that is made now would start, if it cannot start at once. `standing`: its
/// own.
std::optional<std::int64_t> start_of_newcomer(const Request& request, const std::vector<Verdict>& verdicts,
                                              const std::optional<Standing>& standing, const World& world) {
  if (standing) return standing->starts_at_s;
  if (std::cmp_greater_equal(std::ranges::count_if(verdicts, &Verdict::free), request.count))
    return std::nullopt;
  // Nobody knows when a limit lets it pass.
  if (why_held_off(request, world.ledger, world.facts)) return std::nullopt;
  return expected_start(newcomer(request, {}, world.ledger, world.facts), verdicts, world.ledger, world.facts,
                        world.stopped, world.looked_at);
}

Result<Explained> explained(const Request& request, World world, std::vector<Verdict> verdicts,
                            std::optional<Standing> standing) {
  BERTH_LET(const auto able, candidates(request, world.facts));
  std::vector<std::string> looser = looser_requests(request, world);
  const auto& limits = world.facts.limits;
  std::size_t possible = able.size();
  if (limits && is_never_allowed(*limits, request))
    possible = std::min(possible, most_at_once(*limits, request));
  if (request.yield_s && !request.shared)
    possible = std::min(
        possible, verdicts.size() - std::min<std::size_t>(verdicts.size(), world.facts.policy.leave_free));
  auto never = why_never(request, world.facts, verdicts.size());
  return Explained{request,           std::move(world), std::move(verdicts), possible,
                   std::move(looser), std::move(never), std::move(standing)};
}

// All devices are lost or do not answer: that says nothing about the request, which may be granted
// tomorrow.
bool no_device_works(const Snapshot& snapshot) {
  return !snapshot.devices.empty() && std::ranges::none_of(snapshot.devices, [](const Device& device) {
    return device.state == DeviceState::ok;
  });
}

ExplainedRefusal refusal_of(Explained explained, std::optional<std::chrono::milliseconds> waited) {
  ExplainedRefusal refusal{std::move(explained), ErrorCode::not_now, waited};
  if (waited) refusal.code = ErrorCode::timed_out;
  if (refusal.possible < refusal.request.count) refusal.code = ErrorCode::impossible;
  if (refusal.code == ErrorCode::impossible && no_device_works(refusal.world.facts.snapshot))
    refusal.code = ErrorCode::no_driver;
  return refusal;
}

// Of these devices, chosen with these remarks.
std::vector<std::string> notes_on_answer(const Facts& facts, const std::vector<std::string>& uuids,
                                         const std::vector<std::string>& on_choice) {
  std::vector<std::string> notes;
  const Snapshot& snapshot = facts.snapshot;
  if (snapshot.stale_reason)
    notes.push_back(fmt::format("this is an old answer: {}", *snapshot.stale_reason));
  notes.insert(notes.end(), snapshot.notes.begin(), snapshot.notes.end());
  for (const Mask& mask : facts.masks) notes.insert(notes.end(), mask.notes.begin(), mask.notes.end());
  notes.insert(notes.end(), on_choice.begin(), on_choice.end());
  const auto instances = std::ranges::count_if(uuids, [&](const std::string& uuid) {
    const Device* device = find_device(snapshot, uuid);
    return device != nullptr && device->mig;
  });
  if (instances > 1)
    notes.push_back(fmt::format("CUDA shows a process only the first of these {} MIG instances", instances));
  return notes;
}

// BERTH_SAFE_GPU_LOCKS names files beside those of the site, with colons. Empty: the process that
// asks holds the lock of safe_gpu itself, and would wait for itself.
void add_safe_gpu_locks(std::vector<OriginalLock>& rows) {
  const char* value = std::getenv("BERTH_SAFE_GPU_LOCKS");
  if (value == nullptr) return;
  std::string_view rest = value;
  if (rest.empty())
    std::erase_if(rows, [](const OriginalLock& row) { return row.held == OriginalLockSpan::until_used; });
  while (!rest.empty()) {
    const std::string file(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(file.size() + 1, rest.size()));
    if (const auto row = lock_of_safe_gpu(file); std::ranges::find(rows, row) == rows.end())
      rows.push_back(row);
  }
}

std::unexpected<Error> would_wait_for_itself(std::string_view what_it_has) {
  return fail(ErrorCode::not_now,
              "it would wait for itself: it has {}. Release that first (berth release), or ask "
              "for a part of it: berth claim --inside; in Python, within its `with`",
              what_it_has);
}

}  // namespace

Result<std::optional<std::int64_t>> start_of_newcomer(const World& world) {
  const Request request;
  BERTH_LET(const auto verdicts, judge_behind_the_queue(request, world));
  BERTH_LET(const auto standing, standing_of_newcomer(request, world));
  return start_of_newcomer(request, verdicts, standing, world);
}

std::vector<std::string> notes_on(const World& world) {
  std::vector<std::string> notes = notes_on_answer(world.facts, {}, {});
  if (!world.locks_left_out.empty())
    notes.push_back(
        fmt::format("Berth has not read all file locks (/proc/locks): {}; a GPU that somebody has locked "
                    "without a lease may be shown as free",
                    world.locks_left_out));
  if (!world.halted_in_gate.empty()) notes.push_back(world.halted_in_gate);
  for (const std::string& key : world.facts.policy.not_understood)
    notes.push_back(fmt::format("{}; nothing is granted until it is corrected", key));
  const OddListed listed = listed_odd(world.ledger);
  for (const OddTicket& odd : listed.odd) {
    notes.push_back(
        fmt::format("the ticket {} of uid {} cannot be understood: {}", odd.name, odd.uid, odd.reason));
  }
  for (const auto& [uid, count] : listed.rest)
    notes.push_back(fmt::format("{} more tickets of uid {} cannot be understood", count, uid));
  return notes;
}

std::vector<std::string> notes_on(const PickedDevices& picked) {
  return notes_on_answer(picked.world.facts, picked.choice.uuids, picked.choice.notes);
}

std::vector<std::string> notes_on(const HeldLease& lease) {
  return notes_on_answer(lease.world().facts, lease.ticket().devices, lease.notes());
}

Result<Session> Session::open(SourceAccess source, MaskUse mask, const store::Warn& warn) {
  BERTH_LET(auto domain, find_domain(warn));
  return open_at(std::move(domain), std::move(source), mask);
}

Result<Session> Session::open_at(Domain domain, SourceAccess source, MaskUse mask) {
  LookOptions options;
  options.site_files = site::standard_site_file_paths();
  BERTH_LET(auto files, site::read_site_files(options.site_files));
  options.policy = std::move(files.policy);
  store::apply_order_of_machine(options.policy, domain.store->path());
  if (mask == MaskUse::inherit) options.masks = domain.masks;
  options.requester = kThisProcess;
  add_safe_gpu_locks(options.policy.original_locks);
  return Session(std::move(domain), std::move(source), std::move(options));
}

Session::Session(Domain domain, SourceAccess source, LookOptions options)
    : domain_(std::move(domain)), source_(std::move(source)), options_(std::move(options)) {
  options_.within = domain_.within;
  // A lease inside another one counts for no limit.
  if (options_.within || options_.policy.limits.empty()) return;
  options_.asker = asker_here();
}

Result<void> Session::understands_policy() const {
  if (options_.policy.not_understood.empty()) return {};
  return fail(ErrorCode::failure, options_.policy.not_understood.front());
}

// Others could get the same devices, and nobody would notice.
Result<void> Session::is_seen_by_all() const {
  if (!domain_.is_unseen || options_.within) return {};
  return fail(
      ErrorCode::impossible,
      "no GPU is leased here, because /tmp is not the one that others on this machine see: they would "
      "not see the lease in {}; ask an admin to run `sudo berth init`, which makes {} for all",
      store::kFallbackDirectory, store::kSiteDirectory);
}

Result<void> Session::check_not_blocked_by_own_leases(const Request& request,
                                                      const std::vector<TicketId>& own) const {
  BERTH_LET(const auto world, look(request));
  BERTH_LET(const auto able, candidates(request, world.facts));
  std::string in_the_way;
  const auto is_own = [&](const Ticket& lease) { return std::ranges::find(own, lease.id) != own.end(); };
  const auto blocks = [&](const Ticket* lease) {
    // A lease with a time limit ends by itself, so it does not block.
    return is_own(*lease) && !lease->time_s && (!lease->shared || !request.shared);
  };
  std::size_t left = 0;
  for (const std::string& uuid : able) {
    const Device* device = find_device(world.facts.snapshot, uuid);
    const auto holding =
        device == nullptr ? std::vector<const Ticket*>{} : leases_holding(*device, world.ledger);
    const auto lease = std::ranges::find_if(holding, blocks);
    left += lease == holding.end() ? 1 : 0;
    if (lease == holding.end()) continue;
    in_the_way += fmt::format("{}GPU {} (lease {})", in_the_way.empty() ? "" : ", ", label(*device),
                              short_name(world.ledger, (*lease)->id));
  }
  if (left < request.count && able.size() >= request.count)
    return would_wait_for_itself(fmt::format("{} already", in_the_way));
  const auto limits = limits_now(options_);
  const auto limit = limits ? limits->best.gpus : std::nullopt;
  if (!limit || request.count > limit->most) return {};
  std::string kept;
  std::size_t count = 0;
  for (const Ticket& lease : world.ledger.tickets) {
    if (!is_own(lease) || lease.time_s) continue;
    count += lease.devices.size();
    kept +=
        fmt::format("{}GPU {} (lease {})", kept.empty() ? "" : ", ",
                    device_labels(lease.devices, world.facts.snapshot), short_name(world.ledger, lease.id));
  }
  if (std::cmp_less_equal(count + request.count, limit->most)) return {};
  return would_wait_for_itself(
      fmt::format("{} already, and your limit is {}", kept, gpu_limit_in_words(*limit)));
}

Result<World> Session::look(const Request& request, ReadingSet also) const {
  return look_for(std::nullopt, request, also);
}

Result<World> Session::look_for(std::optional<std::uint32_t> requester, const Request& request,
                                ReadingSet also) const {
  LookOptions options = options_;
  options.requester = requester;
  options.also |= also;
  BERTH_LET(const auto source, source_.open());
  return leasing::look(*source, *domain_.store, request, options);
}

Result<std::variant<PickedDevices, ExplainedRefusal>> Session::pick(const Request& asked) const {
  using Answer = std::variant<PickedDevices, ExplainedRefusal>;
  BERTH_DO(understands_policy());
  BERTH_LET(const auto request, settled(asked, options_));
  BERTH_LET(auto world, look_for(kThisProcess, request, readings_in_case_of_choice(request)));
  BERTH_LET(auto verdicts, judge_behind_the_queue(request, world));
  if (std::cmp_less(std::ranges::count_if(verdicts, &Verdict::free), request.count)) {
    BERTH_LET(auto standing, standing_of_newcomer(request, world));
    BERTH_LET(auto why_not, explained(request, std::move(world), std::move(verdicts), std::move(standing)));
    return Answer(refusal_of(std::move(why_not), std::nullopt));
  }
  BERTH_LET(const auto source, source_.open());
  read_to_choose(readings_to_choose(request, verdicts), *source, world);
  Choice choice = choose(request, verdicts, world.facts.snapshot);
  return Answer(PickedDevices{std::move(world), std::move(choice)});
}

Result<Explained> Session::why(const Request& asked) const {
  BERTH_LET(const auto request, settled(asked, options_));
  BERTH_LET(auto world, look_for(kThisProcess, request, ReadingKind::xid));
  BERTH_LET(auto verdicts, judge_behind_the_queue(request, world));
  BERTH_LET(auto standing, standing_of_newcomer(request, world));
  const auto start = start_of_newcomer(request, verdicts, standing, world);
  BERTH_LET(auto found, explained(request, std::move(world), std::move(verdicts), std::move(standing)));
  found.starts_at_s = start;
  return found;
}

Result<std::optional<ExplainedRefusal>> Session::never(const Request& asked) const {
  BERTH_DO(is_seen_by_all());
  BERTH_LET(const auto request, settled(asked, options_));
  BERTH_LET(const auto source, source_.open());
  LookOptions quick = options_;
  quick.books = store::Extent::leases;
  quick.locks = false;
  BERTH_LET(const auto seen, leasing::look(*source, *domain_.store, request, quick));
  const auto possible = check_possible(request, seen.facts);
  if (possible) return std::nullopt;
  if (possible.error().code != ErrorCode::impossible) return std::unexpected(possible.error());
  // Why it is not needs more, and may take longer.
  BERTH_LET(auto world, look_for(kThisProcess, request));
  BERTH_LET(auto verdicts, judge(request, world.ledger, world.facts));
  BERTH_LET(auto why_not, explained(request, std::move(world), std::move(verdicts), std::nullopt));
  return refusal_of(std::move(why_not), std::nullopt);
}

Result<std::variant<HeldLease, ExplainedRefusal>> Session::acquire(const Request& asked,
                                                                   const TicketWords& words,
                                                                   const Patience& patience,
                                                                   const OnWait& on_wait) const {
  using Answer = std::variant<HeldLease, ExplainedRefusal>;
  BERTH_DO(understands_policy());
  BERTH_DO(is_seen_by_all());
  BERTH_LET(const auto request, settled(asked, options_));
  if (patience.wait && !words.beside.empty())
    BERTH_DO(check_not_blocked_by_own_leases(request, words.beside));
  BERTH_LET(auto acquired,
            acquire_by_queue(source_, *domain_.store, request, options_, words, patience, on_wait));
  if (auto* lease = std::get_if<HeldLease>(&acquired)) return Answer(std::move(*lease));
  BERTH_LET(auto refusal, refuse(request, std::get<RequestRefused>(std::move(acquired)), patience));
  return Answer(std::move(refusal));
}

// Not a part of `acquire`, in whose frame its values would lie all through a wait: three pages of
// each waiter's stack.
[[gnu::noinline]] Result<ExplainedRefusal> Session::refuse(const Request& request, RequestRefused refused,
                                                           const Patience& patience) const {
  // Deciding has not looked at who else waits.
  World& world = refused.world;
  if (auto books = domain_.store->look()) {
    world.ledger = std::move(books->ledger);
    world.looked_at = sys::milliseconds_since_boot();
  }
  std::vector<Verdict> verdicts = std::move(refused.standing.verdicts);
  std::optional<Standing> standing;
  if (refused.standing.behind) {
    name_users(world.ledger);
    world.stopped = stopped_waiters(world.ledger, system_processes());
    Ticket mine = newcomer(request, {}, world.ledger, world.facts);
    mine.id = refused.standing.ticket.id;
    mine.expected_s = refused.standing.ticket.expected_s;
    mine.likely_s = refused.standing.ticket.likely_s;
    mine.joined_boot_ms = refused.standing.ticket.joined_boot_ms;
    mine.longest_wait_s = refused.standing.ticket.longest_wait_s;
    verdicts = behind_the_queue(std::move(verdicts), mine, world.ledger, world.facts, world.stopped,
                                world.looked_at);
    standing = std::move(refused.standing);
  }
  BERTH_LET(auto why_not, explained(request, std::move(world), std::move(verdicts), std::move(standing)));
  return refusal_of(std::move(why_not), refused.waited ? patience.limit : std::nullopt);
}

}  // namespace berth::leasing
