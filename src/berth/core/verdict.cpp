#include "berth/core/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/core/clauses.h"
#include "berth/core/selector.h"

namespace berth {
namespace {

/// What the selectors of a request and of the site mean on this machine.
struct Selected {
  std::vector<bool> chosen, excluded;               ///< by place in the snapshot
  std::vector<std::optional<std::string>> by_site;  ///< the reason
  std::size_t chosen_count = 0;
};

Result<std::vector<bool>> marked(const std::vector<std::string>& selectors, const Snapshot& snapshot) {
  std::vector<bool> marks(snapshot.devices.size());
  for (const std::string& selector : selectors) {
    const Result<std::vector<std::size_t>> places = resolve_selector(selector, snapshot);
    if (!places) return std::unexpected(places.error());
    for (const std::size_t place : *places) marks[place] = true;
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
  Selected selected{*chosen, *excluded, {}, 0};
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (!selected.chosen[i]) continue;
    ++selected.chosen_count;
    if (!selected.excluded[i]) continue;
    return fail(ErrorCode::usage,
                fmt::format("device {} is both asked for and excluded", label(snapshot.devices[i])));
  }
  if (!request.devices.empty() && selected.chosen_count < request.count) {
    return fail(ErrorCode::usage,
                fmt::format("{} devices are asked for, but only {} of the machine's are named: {}",
                            request.count, selected.chosen_count, fmt::join(request.devices, ", ")));
  }
  // A site may exclude a card that has since been taken out; what several cards answer to excludes all of
  // them.
  selected.by_site.resize(snapshot.devices.size());
  for (const ExcludedDevice& device : facts.policy.excluded) {
    for (const std::size_t place : devices_named(device.selector, snapshot)) {
      selected.by_site[place] = device.reason;
    }
  }
  return selected;
}

Verdict verdict_of(const Device& device, const Case& subject, Clause last) {
  Verdict verdict{device.uuid, std::nullopt, "", {}, subject.free_bytes};
  if (auto failure = first_failure(subject, last)) {
    verdict.failed = failure->first;
    verdict.reason = std::move(failure->second.reason);
    verdict.culprits = std::move(failure->second.culprits);
  }
  return verdict;
}

Result<std::vector<Verdict>> judge_up_to(const Request& request, const Ledger& ledger, const Facts& facts,
                                         Clause last) {
  const Result<Selected> selected = select(request, facts);
  if (!selected) return std::unexpected(selected.error());
  std::vector<Verdict> verdicts;
  const std::vector<Device>& devices = facts.snapshot.devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (is_split(devices[i])) continue;
    const Case subject{request,
                       facts,
                       devices[i],
                       leases_holding(devices[i], ledger),
                       free_for_lease(devices[i], ledger, facts),
                       selected->chosen[i],
                       selected->excluded[i],
                       selected->by_site[i]};
    verdicts.push_back(verdict_of(devices[i], subject, last));
  }
  return verdicts;
}

/// "GPU 0, 2-5: leased by alice; GPU 1: lost": one part a reason, in the order of the first device of each.
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
  for (const auto& [reason, places] : groups) {
    text += fmt::format("{}GPU {}: {}", text.empty() ? "" : "; ", labels_of(places, snapshot), reason);
  }
  return text;
}

}  // namespace

Result<std::vector<Verdict>> judge(const Request& request, const Ledger& ledger, const Facts& facts) {
  return judge_up_to(request, ledger, facts, Clause::thresholds);
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

Result<void> check_possible(const Request& request, const Facts& facts) {
  const Result<std::vector<Verdict>> verdicts = judge_up_to(request, {}, facts, Clause::static_filters);
  if (!verdicts) return std::unexpected(verdicts.error());
  const auto possible =
      std::count_if(verdicts->begin(), verdicts->end(), [](const Verdict& v) { return v.free(); });
  if (static_cast<std::size_t>(possible) >= request.count) return {};
  if (verdicts->empty()) return fail(ErrorCode::impossible, "this machine has no GPU that can be used");
  const std::string asked = request.count == 1 ? "a device is" : fmt::format("{} devices are", request.count);
  if (verdicts->size() < request.count) {
    return fail(ErrorCode::impossible,
                fmt::format("{} asked for, and this machine has {}", asked, verdicts->size()));
  }
  const std::string found = possible == 0 ? "none of this machine's can"
                                          : fmt::format("only {} of {} can", possible, verdicts->size());
  return fail(ErrorCode::impossible, fmt::format("{} asked for, and {} ever satisfy the request: {}", asked,
                                                 found, reasons(*verdicts, facts.snapshot)));
}

}  // namespace berth
