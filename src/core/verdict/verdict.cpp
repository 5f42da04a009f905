#include "berth/verdict/verdict.h"

#include <algorithm>
#include <utility>

#include "berth/base/text.h"
#include "berth/request/request.h"

namespace berth {
namespace {

/// The meaning on this machine of the selectors of a request and of the site.
struct Selected {
  std::vector<bool> chosen, excluded;               ///< by place in the snapshot
  std::vector<std::optional<std::string>> by_site;  ///< the reason
  std::vector<const PassedOver*> passed_over;       ///< null: it is not, or it is tried all the same
  std::size_t chosen_count = 0;
  std::optional<std::string> vendor;  ///< whose devices alone are given
};

Result<std::vector<bool>> marked(const std::vector<std::string>& selectors, const Snapshot& snapshot) {
  std::vector<bool> marks(snapshot.devices.size());
  for (const std::string& selector : selectors) {
    const Result<std::vector<std::size_t>> indices = resolve_selector(selector, snapshot);
    if (!indices) return std::unexpected(indices.error());
    for (const std::size_t place : *indices) marks[place] = true;
  }
  return marks;
}

Result<Selected> select(const Request& request, const Facts& facts) {
  if (const Result<void> checked = check(request); !checked) return std::unexpected(checked.error());
  const Snapshot& snapshot = facts.snapshot;
  Result<std::vector<bool>> chosen = marked(request.devices, snapshot);
  if (!chosen) return std::unexpected(context(chosen.error(), "devices asked for"));
  Result<std::vector<bool>> excluded = marked(request.exclude, snapshot);
  if (!excluded) return std::unexpected(context(excluded.error(), "devices to exclude"));
  Selected selected{*chosen, *excluded, {}, {}, 0, {}};
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (!selected.chosen[i]) continue;
    ++selected.chosen_count;
    if (!selected.excluded[i]) continue;
    return fail(ErrorCode::usage, "device {} is both asked for and excluded", label(snapshot.devices[i]));
  }
  if (!request.devices.empty() && selected.chosen_count < request.count) {
    return fail(ErrorCode::usage, "{} devices are asked for, but only {} of the machine's are named: {}",
                request.count, selected.chosen_count, fmt::join(request.devices, ", "));
  }
  // A site may exclude a card that was taken out since. If a name fits several cards, all of them
  // are excluded.
  selected.by_site.resize(snapshot.devices.size());
  for (const ExcludedDevice& device : facts.policy.excluded) {
    for (const std::size_t place : devices_named(device.selector, snapshot)) {
      selected.by_site[place] = device.reason;
    }
  }
  selected.passed_over.resize(snapshot.devices.size());
  for (std::size_t i = 0; i < snapshot.devices.size() && !facts.passed_over.empty(); ++i) {
    const auto found = facts.passed_over.find(snapshot.devices[i].uuid);
    if (found != facts.passed_over.end()) selected.passed_over[i] = &found->second;
  }
  return selected;
}

Verdict verdict_of(const Device& device, const Case& subject, Clause last) {
  Verdict verdict{device.uuid, std::nullopt, "", {}, subject.free_bytes};
  const auto bad_runs = subject.facts.bad_runs.find(device.uuid);
  if (bad_runs != subject.facts.bad_runs.end()) verdict.bad_runs = bad_runs->second;
  if (auto failure = first_failure(subject, last)) {
    verdict.failed = failure->first;
    verdict.reason = std::move(failure->second.reason);
    verdict.culprits = std::move(failure->second.culprits);
    verdict.more_culprits = failure->second.more_culprits;
  }
  return verdict;
}

/// The facts about the device with this index.
Case case_of(std::size_t place, const Request& request, const Ledger& ledger, const Facts& facts,
             const Selected& selected) {
  const Device& device = facts.snapshot.devices[place];
  return {request,
          facts,
          device,
          leases_holding(device, ledger),
          free_for_lease(device, ledger, facts),
          selected.chosen[place],
          selected.excluded[place],
          selected.by_site[place],
          selected.passed_over[place],
          selected.vendor};
}

/// A job is started with the mask of one vendor. Error: the request names devices of two.
Result<void> check_one_vendor(const Selected& selected, const Snapshot& snapshot) {
  const Device* first = nullptr;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    const Device& device = snapshot.devices[i];
    if (!selected.chosen[i]) continue;
    if (first == nullptr) first = &device;
    if (first->vendor == device.vendor) continue;
    return fail(ErrorCode::usage,
                "device {} is made by {} and device {} by {}: a job gets devices of one maker, so "
                "ask for those of one",
                label(*first), vendor_of(*first).maker, label(device), vendor_of(device).maker);
  }
  return {};
}

/// The vendor whose devices the request gets. It does not matter who holds them now: the job waits
/// for one of them.
std::string vendor_for(const Request& request, const Facts& facts, const Selected& selected) {
  std::vector<std::pair<std::string, std::size_t>> able;
  const std::vector<Device>& devices = facts.snapshot.devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (is_split(devices[i])) continue;
    if (able.empty() || able.back().first != devices[i].vendor) able.emplace_back(devices[i].vendor, 0);
    if (!first_failure(case_of(i, request, {}, facts, selected), Clause::static_filters))
      ++able.back().second;
  }
  const auto enough =
      std::ranges::find_if(able, [&](const auto& each) { return each.second >= request.count; });
  if (enough != able.end()) return enough->first;
  const auto some = std::ranges::find_if(able, [](const auto& each) { return each.second > 0; });
  return some != able.end() ? some->first : devices.front().vendor;
}

/// Nobody waits for a judgement alone: where too few devices would ever remain for the request,
/// those that have been passed over for the longest time are tried.
void try_the_longest_passed_over(Selected& selected, const Request& request, const Facts& facts) {
  std::vector<std::size_t> passed_over;
  std::size_t remain = 0;
  const std::vector<Device>& devices = facts.snapshot.devices;
  for (std::size_t i = 0; i < devices.size() && !facts.passed_over.empty(); ++i) {
    if (is_split(devices[i])) continue;
    if (first_failure(case_of(i, request, {}, facts, selected), Clause::static_filters)) continue;
    if (selected.passed_over[i] != nullptr)
      passed_over.push_back(i);
    else
      ++remain;
  }
  std::ranges::stable_sort(passed_over, {}, [&](std::size_t i) { return selected.passed_over[i]->since; });
  for (const std::size_t i : passed_over) {
    if (remain++ >= request.count) break;
    selected.passed_over[i] = nullptr;
  }
}

Result<std::vector<Verdict>> judge_selected(const Request& request, const Ledger& ledger, const Facts& facts,
                                            const Selected& selected, Clause last) {
  std::vector<Verdict> verdicts;
  const std::vector<Device>& devices = facts.snapshot.devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (is_split(devices[i])) continue;
    verdicts.push_back(verdict_of(devices[i], case_of(i, request, ledger, facts, selected), last));
  }
  return verdicts;
}

Result<std::vector<Verdict>> judge_up_to(const Request& request, const Ledger& ledger, const Facts& facts,
                                         Clause last) {
  BERTH_LET(auto selected, select(request, facts));
  if (!is_of_one_vendor(facts.snapshot)) {
    BERTH_DO(check_one_vendor(selected, facts.snapshot));
    selected.vendor = vendor_for(request, facts, selected);
  }
  try_the_longest_passed_over(selected, request, facts);
  return judge_selected(request, ledger, facts, selected, last);
}

/// "GPU 0, 2-5: leased by alice; GPU 1: lost": one part a reason, in the order of the first device
/// of each.
std::string reasons(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  std::size_t place = 0;
  for (const Verdict& verdict : verdicts) {
    while (is_split(snapshot.devices[place])) ++place;
    const std::size_t here = place++;
    if (verdict.free()) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& other) { return other.first == verdict.reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), {verdict.reason, {}});
    group->second.push_back(here);
  }
  std::string text;
  for (const auto& [reason, indices] : groups) {
    text += fmt::format("{}GPU {}: {}", text.empty() ? "" : "; ", labels_of(indices, snapshot), reason);
  }
  return text;
}

/// Inside a lease there is nobody else to leave GPUs to.
unsigned gpus_to_leave(const Request& request, const Facts& facts) {
  return request.yield_s && !facts.within ? facts.policy.leave_free : 0;
}

/// Why a request that yields may not take as many devices that are all free: too few others would
/// be.
std::optional<std::string> why_too_few_stay_free(const Request& request, const Ledger& ledger,
                                                 const Facts& facts) {
  const unsigned leave = gpus_to_leave(request, facts);
  if (leave == 0) return std::nullopt;
  const auto each = judge_each(Request{}, ledger, facts);
  if (!each) return std::nullopt;
  const auto free = std::ranges::count_if(*each, &Verdict::free);
  if (std::cmp_greater_equal(free, request.count + leave)) return std::nullopt;
  return fmt::format(
      "a request that yields starts only if {} {} free beside it (leave_free in the site file): {} free now",
      counted(leave, "GPU"), leave == 1 ? "stays" : "stay",
      free == 1 ? "1 GPU is" : fmt::format("{} GPUs are", free));
}

}  // namespace

std::optional<std::string> why_held_off(const Request& request, const Ledger& ledger, const Facts& facts) {
  if (facts.limits) {
    if (auto over = over_limit(*facts.limits, request, ledger)) return over;
  }
  // A share may go where others are already.
  return request.shared ? std::nullopt : why_too_few_stay_free(request, ledger, facts);
}

Result<std::vector<Verdict>> judge(const Request& request, const Ledger& ledger, const Facts& facts) {
  BERTH_LET(auto verdicts, judge_up_to(request, ledger, facts, Clause::thresholds));
  const auto held_off = why_held_off(request, ledger, facts);
  const auto not_an_empty_one =
      request.shared && !held_off ? why_too_few_stay_free(request, ledger, facts) : std::nullopt;
  const auto& reason = held_off ? held_off : not_an_empty_one;
  if (!reason) return verdicts;
  for (Verdict& verdict : verdicts) {
    if (!verdict.free() || (!held_off && !leases_on(ledger, verdict.uuid).empty())) continue;
    verdict.failed = Clause::within_limit;
    verdict.reason = *reason;
  }
  return verdicts;
}

Result<std::vector<Verdict>> judge_each(const Request& request, const Ledger& ledger, const Facts& facts) {
  BERTH_LET(const auto selected, select(request, facts));
  return judge_selected(request, ledger, facts, selected, Clause::thresholds);
}

Result<std::vector<std::string>> candidates(const Request& request, const Facts& facts) {
  const Result<std::vector<Verdict>> verdicts = judge_up_to(request, {}, facts, Clause::static_filters);
  if (!verdicts) return std::unexpected(verdicts.error());
  std::vector<std::string> uuids;
  for (const Verdict& verdict : *verdicts) {
    if (verdict.free()) uuids.push_back(verdict.uuid);
  }
  return uuids;
}

std::optional<std::string> why_never(const Request& request, const Facts& facts, std::size_t devices) {
  if (facts.limits && is_never_allowed(*facts.limits, request)) return over_limit(*facts.limits, request, {});
  const unsigned leave = request.shared ? 0 : gpus_to_leave(request, facts);
  if (leave == 0 || devices == 0 || devices >= request.count + leave) return std::nullopt;
  return fmt::format(
      "a request that yields leaves {} free (leave_free in the site file), and this machine has {}: ask "
      "without --yield",
      counted(leave, "GPU"), counted(devices, "GPU"));
}

Result<void> check_possible(const Request& request, const Facts& facts) {
  const Result<std::vector<Verdict>> verdicts = judge_up_to(request, {}, facts, Clause::static_filters);
  if (!verdicts) return std::unexpected(verdicts.error());
  const auto possible =
      std::count_if(verdicts->begin(), verdicts->end(), [](const Verdict& v) { return v.free(); });
  if (const auto never = why_never(request, facts, verdicts->size()))
    return fail(ErrorCode::impossible, *never);
  if (static_cast<std::size_t>(possible) >= request.count) return {};
  if (verdicts->empty()) return fail(ErrorCode::impossible, "this machine has no GPU that can be used");
  const std::string asked = request.count == 1 ? "a device is" : fmt::format("{} devices are", request.count);
  if (verdicts->size() < request.count) {
    return fail(ErrorCode::impossible, "{} asked for, and this machine has {}", asked, verdicts->size());
  }
  const std::string found = possible == 0 ? "none of this machine's can"
                                          : fmt::format("only {} of {} can", possible, verdicts->size());
  return fail(ErrorCode::impossible, "{} asked for, and {} ever satisfy the request: {}", asked, found,
              reasons(*verdicts, facts.snapshot));
}

}  // namespace berth
