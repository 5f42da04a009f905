// Each clause is a function: nullopt if it holds, else why not, with its numbers. A reading that is
// absent fails the clause that needs it. Two clauses do not need theirs: most boards have neither
// row remapping nor, some of them, compute modes, and a feature that a board does not have cannot
// forbid its use.
#include "berth/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/request/request.h"

namespace berth {
namespace {

using Objection = std::optional<Failure>;

Failure because(std::string reason) {
  return Failure{std::move(reason), {}};
}

Culprit culprit_of(const Process& process, const Facts& facts) {
  Culprit culprit{process.user, process.pid, process.command, process.started_at_s.value_or(0), {}, ""};
  if (culprit.user.empty() && process.uid) culprit.user = fmt::format("uid {}", *process.uid);
  const auto lease = facts.process_leases.find(process.pid);
  if (lease != facts.process_leases.end()) culprit.lease = lease->second;
  if (!process.container.empty()) culprit.note = fmt::format("in container {}", process.container);
  return culprit;
}

Objection healthy(const Case& subject) {
  auto why = why_unfit(subject.device, index_in_vendor(subject.device, subject.facts.snapshot));
  if (!why) return std::nullopt;
  return because(*std::move(why));
}

Objection not_excluded(const Case& subject) {
  if (!subject.excluded_by_site) return std::nullopt;
  if (subject.excluded_by_site->empty()) return because("excluded by the site");
  return because(fmt::format("excluded by the site: {}", *subject.excluded_by_site));
}

Objection in_lease(const Case& subject) {
  const auto& within = subject.facts.within;
  if (!within || std::find(within->begin(), within->end(), subject.device.uuid) != within->end())
    return std::nullopt;
  return because("not in this lease");
}

Objection in_mask(const Case& subject) {
  for (const Mask& mask : subject.facts.masks) {
    if (mask.vendor != subject.device.vendor) continue;
    if (std::ranges::find(mask.uuids, subject.device.uuid) != mask.uuids.end()) return std::nullopt;
    return because(fmt::format("not in {}={}", vendor_named(mask.vendor).mask_variable, mask.text));
  }
  return std::nullopt;
}

std::string not_met(const Unmet& unmet) {
  return fmt::format("{} asked, it is {}", unmet.condition, unmet.actual);
}

Objection static_filters(const Case& subject) {
  const Request& request = subject.request;
  if (!request.devices.empty() && !subject.chosen_by_user) return because("not one of the devices asked for");
  if (subject.excluded_by_user) return because("excluded by the request");
  if (subject.vendor && *subject.vendor != subject.device.vendor)
    return because(fmt::format(
        "made by {}: a request gets GPUs of one maker, here {}; to get these instead, add --where vendor={}",
        vendor_of(subject.device).maker, vendor_named(*subject.vendor).maker, subject.device.vendor));
  if (request.admitted &&
      std::ranges::find(*request.admitted, subject.device.uuid) == request.admitted->end())
    return because("not admitted by the condition of the program that asks");
  if (request.count > 1 && subject.device.mig && !subject.chosen_by_user) {
    return because(fmt::format("a MIG instance: CUDA sees only one of them at a time, {} devices asked for",
                               request.count));
  }
  for (const Expression& condition : request.conditions) {
    if (const auto unmet = condition.never_met_by(subject.device, known_host(subject.facts)))
      return because(not_met(*unmet));
  }
  const Reading<std::uint64_t> lendable = lendable_memory(subject.device);
  if (lendable && request.promise_bytes > *lendable) {
    const auto [has, wants] = bytes_side_by_side(*lendable, request.promise_bytes);
    return because(fmt::format("{} in all, {} needed", has, wants));
  }
  return std::nullopt;
}

std::string room(std::uint64_t free_bytes, std::uint64_t promise_bytes) {
  const auto [has, wants] = bytes_side_by_side(free_bytes, promise_bytes);
  return fmt::format("{} free for a lease, {} needed", has, wants);
}

/// A shared request beside shared leases needs room; everything else needs the device to have no
/// lease.
Objection not_leased(const Case& subject) {
  const auto& foreign = subject.facts.foreign_locks;
  const auto locked = [&](const std::string& uuid) {
    return std::find(foreign.begin(), foreign.end(), uuid) != foreign.end();
  };
  const Device& device = subject.device;
  if (locked(device.uuid) || (device.mig && locked(device.mig->parent_uuid))) {
    return because("locked by a program that has no ticket");
  }
  const auto& by_originals = subject.facts.locked_by_originals;
  if (const auto by = by_originals.find(device.uuid); by != by_originals.end())
    return because("locked by " + by->second);
  if (subject.leases.empty()) return std::nullopt;
  Failure failure;
  for (const Ticket* lease : subject.leases | std::views::take(kMostCulprits))
    failure.culprits.push_back(culprit_of(*lease));
  failure.more_culprits = subject.leases.size() - failure.culprits.size();
  const bool whole = std::any_of(subject.leases.begin(), subject.leases.end(),
                                 [&](const Ticket* lease) { return takes_whole(*lease, device); });
  failure.reason = fmt::format("{} by {}", whole ? "leased" : "leased in part", names_of(subject.leases));
  if (whole || !subject.request.shared) return failure;
  if (!subject.free_bytes) {
    failure.reason += "; its free memory is not available";
    return failure;
  }
  if (*subject.free_bytes >= subject.request.promise_bytes) return std::nullopt;
  failure.reason += fmt::format("; {}", room(*subject.free_bytes, subject.request.promise_bytes));
  return failure;
}

std::string describe(const Process& process, const Culprit& culprit) {
  std::string text = fmt::format("pid {}", process.pid);
  if (!culprit.user.empty()) text += fmt::format(" of {}", culprit.user);
  if (process.used_bytes) text += fmt::format(" with {}", bytes_for_people(*process.used_bytes));
  if (culprit.lease) text += ", whose lease is for other devices";
  return text;
}

/// The first process that has ended and is still listed. Its lease may be over by then.
Objection no_process_ends(const Case& subject) {
  if (!subject.device.processes) return std::nullopt;
  const auto ending = std::ranges::find_if(*subject.device.processes, [&](const Process& process) {
    return is_leaving(process, subject.leases, subject.facts);
  });
  if (ending == subject.device.processes->end()) return std::nullopt;
  Failure failure;
  failure.culprits.push_back(culprit_of(*ending, subject.facts));
  failure.reason = fmt::format("draining: {} ends", describe(*ending, failure.culprits.front()));
  return failure;
}

Objection not_draining(const Case& subject) {
  if (auto ends = no_process_ends(subject)) return ends;
  const auto& draining = subject.facts.draining;
  if (std::find(draining.begin(), draining.end(), subject.device.uuid) == draining.end()) return std::nullopt;
  const Reading<std::uint64_t> used = memory_in_use(subject.device.memory);
  if (!used) return because("draining: its last lease has ended, its memory is not back yet");
  return because(
      fmt::format("draining: its last lease has ended, {} are not back yet", bytes_for_people(*used)));
}

Objection no_outsider(const Case& subject) {
  const bool must_know = subject.request.clean;
  if (!subject.device.processes && !must_know && trusts_leases(subject.device, subject.facts))
    return std::nullopt;
  if (!subject.device.processes)
    return because(
        "its processes are not available, so nobody can say that it is idle: `berth doctor` says more");
  const auto counts = must_know ? computes_without_lease : is_outsider;
  Failure failure;
  std::string described;
  for (const Process& process : *subject.device.processes) {
    if (!counts(process, subject.leases, subject.facts)) continue;
    failure.culprits.push_back(culprit_of(process, subject.facts));
    constexpr std::size_t kDescribed = 3;
    if (failure.culprits.size() > kDescribed) continue;
    if (!described.empty()) described += "; ";
    described += describe(process, failure.culprits.back());
  }
  const std::size_t count = failure.culprits.size();
  const unsigned allowed = subject.request.allowed_processes;
  if (count <= allowed) return std::nullopt;
  failure.reason = fmt::format("{} process{} without a lease for it: {}{}", count, count == 1 ? "" : "es",
                               described, count > 3 ? "; …" : "");
  if (allowed > 0) failure.reason += fmt::format(" ({} allowed)", allowed);
  return failure;
}

/// Of a device whose processes or memory are not told: what is in use beyond what its leases were
/// promised.
Objection beyond_promises(const Case& subject) {
  const Reading<std::uint64_t> used = memory_in_use(subject.device.memory);
  if (!used) return std::nullopt;
  std::uint64_t promised = subject.facts.policy.hidden_tolerance_bytes;
  for (const Ticket* lease : subject.leases) promised = sum_of_bytes(promised, lease->promise_bytes);
  if (*used <= promised) return std::nullopt;
  const auto [found, limit] = bytes_side_by_side(*used, promised);
  return because(fmt::format(
      "hidden holder: {} in use, {} tolerated and promised; the driver does not tell its processes", found,
      limit));
}

Objection no_hidden_holder(const Case& subject) {
  const Device& device = subject.device;
  // The machine's own memory is in use by everything: the list of processes is all there is to go
  // by.
  if (device.memory.kind == MemoryKind::unified) return std::nullopt;
  if ((!device.processes || !memory_in_use(device.memory)) && trusts_leases(device, subject.facts))
    return beyond_promises(subject);
  const Reading<Unexplained> unexplained = unexplained_memory(device);
  if (!unexplained)
    return because(
        "its memory in use is not available, so nobody can say that it is idle: `berth doctor` says more");
  const std::uint64_t tolerated = subject.facts.policy.hidden_tolerance_bytes;
  if (unexplained->bytes <= tolerated) return std::nullopt;
  const auto [found, limit] = bytes_side_by_side(unexplained->bytes, tolerated);
  std::string reason =
      fmt::format("hidden holder: {} in use beyond the listed processes, {} tolerated", found, limit);
  if (unexplained->some_untold) reason += " (the memory of some listed processes is not available)";
  return because(std::move(reason));
}

Objection compute_mode(const Case& subject) {
  const Reading<ComputeMode>& mode = subject.device.compute_mode;
  if (!mode || *mode == ComputeMode::shared) return std::nullopt;
  if (*mode == ComputeMode::prohibited) return because("compute mode prohibited: nothing may compute on it");
  // The one process is the server, which computes for all of its clients.
  if (has_mps(subject.device)) return std::nullopt;
  Failure failure;
  for (const Process& process : subject.device.processes.value_or(std::vector<Process>{})) {
    const bool is_own = subject.facts.own_processes.contains(process.pid);
    if (process.kind != ProcessKind::graphics && !is_own && !is_ignored(process, subject.facts.policy))
      failure.culprits.push_back(culprit_of(process, subject.facts));
  }
  if (!failure.culprits.empty()) {
    failure.reason =
        fmt::format("compute mode exclusive: only one process may compute on it, and pid {} does",
                    failure.culprits.front().pid);
    return failure;
  }
  if (subject.leases.empty()) return std::nullopt;
  failure.culprits.push_back(culprit_of(*subject.leases.front()));
  failure.reason =
      fmt::format("compute mode exclusive: only one process may compute on it, and {} has leased it",
                  name_of(*subject.leases.front()));
  return failure;
}

Objection not_passed_over(const Case& subject) {
  if (subject.passed_over == nullptr) return std::nullopt;
  return because(fmt::format("passed over until {}: {}", subject.passed_over->until_text,
                             why_passed_over(*subject.passed_over, subject.facts.snapshot)));
}

Objection thresholds(const Case& subject) {
  const DeviceFacts facts{subject.device, subject.free_bytes, known_host(subject.facts)};
  for (const Expression& condition : subject.request.conditions) {
    if (const auto unmet = condition.unmet_by(facts)) return because(not_met(*unmet));
  }
  if (!subject.request.shared) return std::nullopt;
  if (const auto most = subject.facts.policy.shares_per_gpu; most && subject.leases.size() >= *most)
    return because(fmt::format("leased in part by {}; the site allows {} share{} on a GPU",
                               names_of(subject.leases), *most, *most == 1 ? "" : "s"));
  if (!subject.free_bytes) return because("its free memory is not available");
  if (*subject.free_bytes >= subject.request.promise_bytes) return std::nullopt;
  return because(room(*subject.free_bytes, subject.request.promise_bytes));
}

struct ClauseQuestion {
  Clause clause;
  Objection (*ask)(const Case&);
};
constexpr auto kQuestions = std::to_array<ClauseQuestion>({
    {Clause::healthy, healthy},
    {Clause::not_excluded, not_excluded},
    {Clause::in_lease, in_lease},
    {Clause::in_mask, in_mask},
    {Clause::static_filters, static_filters},
    {Clause::not_leased, not_leased},
    {Clause::not_draining, not_draining},
    {Clause::no_outsider, no_outsider},
    {Clause::no_hidden_holder, no_hidden_holder},
    {Clause::compute_mode, compute_mode},
    {Clause::not_passed_over, not_passed_over},
    {Clause::thresholds, thresholds},
});

// In this order a verdict names the first that fails, and no clause before the last one is left
// out.
consteval bool is_each_clause_asked_in_its_order() {
  for (std::size_t at = 0; at < kQuestions.size(); ++at) {
    if (kQuestions[at].clause != static_cast<Clause>(at)) return false;
  }
  return true;
}
static_assert(is_each_clause_asked_in_its_order());
static_assert(kQuestions.back().clause == Clause::thresholds);

}  // namespace

Culprit culprit_of(const Ticket& ticket) {
  constexpr std::size_t kMostWords = 256;
  Culprit culprit{ticket.user,
                  ticket.taker.pid,
                  listed_words(ticket.command, kMostWords),
                  ticket.since_s,
                  {},
                  listed_words(ticket.note, kMostWords)};
  if (ticket.phase == TicketPhase::granted) culprit.lease = ticket.id;
  return culprit;
}

std::string name_of(const Ticket& ticket) {
  return ticket.user.empty() ? fmt::format("uid {}", ticket.uid) : ticket.user;
}

std::string names_of(const std::vector<const Ticket*>& tickets) {
  std::set<std::uint32_t> users;
  std::vector<std::string> names;
  for (const Ticket* ticket : tickets) {
    if (users.insert(ticket->uid).second && names.size() < kMostCulprits) names.push_back(name_of(*ticket));
  }
  const std::size_t more = users.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

bool read_value(std::string_view text, Clause& clause) {
  clause = from_word<Clause>(text).value_or(Clause::unknown);
  return true;
}

std::optional<std::pair<Clause, Failure>> first_failure(const Case& subject, Clause last) {
  for (const auto& [clause, ask] : kQuestions) {
    if (clause > last) break;
    if (Objection failure = ask(subject)) return std::pair(clause, *std::move(failure));
  }
  return std::nullopt;
}

}  // namespace berth
