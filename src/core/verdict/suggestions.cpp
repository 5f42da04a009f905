// Each way to loosen changes one point of the request, and what it finds is judged anew before it
// is suggested: a suggestion that fails is worse than none.
#include "berth/verdict/suggestions.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "berth/base/units.h"
#include "berth/request/expression_field.h"
#include "berth/request/request_fields.h"

namespace berth {
namespace {

constexpr std::size_t kMostSuggestions = 3;

struct Scene {
  const Ledger& ledger;
  const Facts& facts;

  std::vector<Verdict> free(const Request& request) const {
    Result<std::vector<Verdict>> verdicts = judge(request, ledger, facts);
    if (!verdicts) return {};
    std::erase_if(*verdicts, [](const Verdict& verdict) { return !verdict.free(); });
    return *std::move(verdicts);
  }
};

using Suggestions = std::vector<Suggestion>;

/// Adds the request if it succeeds.
void suggest(Suggestions& suggestions, const Scene& scene, std::string change, Request request) {
  const std::vector<Verdict> free = scene.free(request);
  if (free.size() < request.count) return;
  Choice choice = choose(request, free, scene.facts.snapshot);
  suggestions.push_back({std::move(change), std::move(request), std::move(choice)});
}

/// The request with every condition split at its "and"s, so that single parts can be changed.
Request with_parts(const Request& request) {
  Request split = request;
  split.conditions.clear();
  for (const Expression& condition : request.conditions) {
    std::ranges::copy(condition.conjuncts(), std::back_inserter(split.conditions));
  }
  return split;
}

Request without_condition(const Request& request, std::size_t index) {
  Request looser = request;
  looser.conditions.erase(looser.conditions.begin() + static_cast<std::ptrdiff_t>(index));
  return looser;
}

/// The tightest threshold that as many devices meet as are asked for, when all else of the request
/// holds.
std::optional<Expression> threshold_that_does(const Request& request, std::size_t index, const Scene& scene) {
  std::vector<std::pair<double, Expression>> reachable;
  for (const Verdict& verdict : scene.free(without_condition(request, index))) {
    const Device* device = find_device(scene.facts.snapshot, verdict.uuid);
    const auto loosened = request.conditions[index].loosened_for(
        DeviceFacts{*device, verdict.free_bytes, known_host(scene.facts)});
    if (!loosened) continue;
    const Threshold threshold = *loosened->threshold();
    reachable.emplace_back(threshold.at_least ? -threshold.value : threshold.value, *loosened);
  }
  if (reachable.size() < request.count) return std::nullopt;
  std::ranges::stable_sort(reachable, {}, [](const auto& entry) { return entry.first; });
  return reachable[request.count - 1].second;
}

void lower_thresholds(Suggestions& suggestions, const Request& request, const Scene& scene) {
  for (std::size_t i = 0; i < request.conditions.size(); ++i) {
    const auto threshold = threshold_that_does(request, i, scene);
    if (!threshold) continue;
    Request looser = request;
    looser.conditions[i] = *threshold;
    suggest(suggestions, scene,
            fmt::format("{} instead of {}", threshold->text(), request.conditions[i].text()),
            std::move(looser));
  }
}

void lower_promise(Suggestions& suggestions, const Request& request, const Scene& scene) {
  if (request.promise_bytes == 0) return;
  Request looser = request;
  looser.promise_bytes = 0;
  std::vector<std::uint64_t> rooms;
  for (const Verdict& verdict : scene.free(looser)) rooms.push_back(verdict.free_bytes.value_or(0));
  if (rooms.size() < request.count) return;
  std::ranges::sort(rooms, std::greater<>());
  const std::string text =
      round_number(FieldKind::bytes, static_cast<double>(rooms[request.count - 1]), true);
  looser.promise_bytes = bytes_from_text(text, Unitless::is_base).value_or(0);
  if (looser.promise_bytes == 0 || looser.promise_bytes >= request.promise_bytes) return;
  std::string change = fmt::format("{} of memory instead of {}", bytes_for_people(looser.promise_bytes),
                                   bytes_for_people(request.promise_bytes));
  suggest(suggestions, scene, std::move(change), std::move(looser));
}

void lower_count(Suggestions& suggestions, const Request& request, const Scene& scene) {
  const std::size_t free_count = scene.free(request).size();
  if (free_count == 0) return;
  Request looser = request;
  looser.count = static_cast<unsigned>(free_count);
  suggest(suggestions, scene,
          fmt::format("{} GPU{} instead of {}", free_count, free_count == 1 ? "" : "s", request.count),
          std::move(looser));
}

void drop_conditions(Suggestions& suggestions, const Request& request, const Scene& scene) {
  for (std::size_t i = 0; i < request.conditions.size(); ++i) {
    // Where another threshold does, nothing need be left out.
    if (threshold_that_does(request, i, scene)) continue;
    suggest(suggestions, scene, fmt::format("without {}", request.conditions[i].text()),
            without_condition(request, i));
  }
}

/// "GPU 0, 3:1": as the request names them, by index or by UUID.
std::string named(const std::vector<std::string>& devices) {
  const bool by_index = !devices.front().empty() && devices.front().front() <= '9';
  return fmt::format("{}{}", by_index ? "GPU " : "", fmt::join(devices, ", "));
}

void leave_out_fields(Suggestions& suggestions, const Request& request, const Scene& scene) {
  for (const RequestField& field : request_fields()) {
    if (!field.looser.exists() || !is_said(field, request)) continue;
    Request looser = request;
    leave_out(field, looser);
    // "only 0" would be read as a number of devices.
    const std::string value = is_stored_in(&Request::devices, field) ? named(request.devices)
                                                                     : value_in_words(field, request, ", ");
    suggest(suggestions, scene, in_words(field.looser, value), std::move(looser));
  }
}

void allow_company(Suggestions& suggestions, const Request& request, const Scene& scene) {
  const Result<std::vector<Verdict>> verdicts = judge(request, scene.ledger, scene.facts);
  std::set<std::size_t> counts;
  for (const Verdict& verdict : verdicts.value_or(std::vector<Verdict>{})) {
    if (verdict.failed == Clause::no_outsider) counts.insert(verdict.culprits.size());
  }
  for (const std::size_t count : counts) {
    if (count == 0) continue;  // its processes are not known
    Request looser = request;
    looser.allowed_processes = static_cast<unsigned>(count);
    const std::size_t before = suggestions.size();
    suggest(suggestions, scene,
            fmt::format("beside up to {} process{} of others", count, count == 1 ? "" : "es"),
            std::move(looser));
    if (suggestions.size() > before) return;
  }
}

}  // namespace

std::vector<Suggestion> loosen(const Request& request, const Ledger& ledger, const Facts& facts) {
  const Scene scene{ledger, facts};
  const Request split = with_parts(request);
  if (scene.free(split).size() >= request.count) return {};
  Suggestions suggestions;
  for (const auto way :
       {lower_thresholds, lower_promise, lower_count, drop_conditions, leave_out_fields, allow_company}) {
    way(suggestions, split, scene);
  }
  if (suggestions.size() > kMostSuggestions) suggestions.resize(kMostSuggestions);
  return suggestions;
}

}  // namespace berth
