#include "berth/verdict/verdict.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/split_mix.h"
#include "berth/device/closest_devices.h"
#include "berth/device/device.h"
#include "berth/request/expression_tree.h"
#include "berth/request/request.h"
#include "berth/request/request_fields.h"

namespace berth {
namespace {

/// A device that may be chosen.
struct Option {
  const Device* device = nullptr;
  Reading<std::uint64_t> free_bytes;
  unsigned bad_runs = 0;
};

std::vector<Option> options_of(const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  std::vector<Option> options;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.free()) continue;
    if (const Device* device = find_device(snapshot, verdict.uuid))
      options.push_back({device, verdict.free_bytes, verdict.bad_runs});
  }
  return options;
}

/// A share goes where something is in use already: what is left empty serves who wants whole
/// devices.
bool fills(const Request& request) {
  return request.order == Order::automatic && request.shared;
}

bool by_topology(const Request& request) {
  return request.order == Order::topology || (request.order == Order::automatic && !request.shared);
}

/// Whether the topology can make a difference. Between two devices it cannot tell which is the less
/// connected.
bool topology_decides(const Request& request, std::size_t free_count) {
  if (!by_topology(request) || free_count <= request.count) return false;
  return request.count > 1 || free_count > 2;
}

constexpr std::string_view kNoTopology = "topology is not known: took the lowest index";

/// Sorts by what `key` gives, least first; without a reading last; else as before.
template <class Key>
void sort_by(std::vector<Option>& options, Key key) {
  std::stable_sort(options.begin(), options.end(), [&](const Option& a, const Option& b) {
    const auto ka = key(a), kb = key(b);
    return ka && kb ? *ka < *kb : ka.has_value() && !kb.has_value();
  });
}

template <class T>
Reading<std::int64_t> signed_reading(const Reading<T>& reading, int sign) {
  return reading ? Reading<std::int64_t>(sign * static_cast<std::int64_t>(*reading)) : std::nullopt;
}

void shuffle(std::vector<Option>& options, std::uint64_t seed) {
  SplitMix random(seed);
  for (std::size_t left = options.size(); left > 1; --left) {
    std::swap(options[left - 1], options[random.next() % left]);
  }
}

/// The place of the first selector that names the device.
Reading<std::int64_t> place_in_list(const Device& device, const std::vector<std::string>& selectors,
                                    const Snapshot& snapshot) {
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    for (const std::size_t place : devices_named(selectors[i], snapshot)) {
      if (&snapshot.devices[place] == &device) return static_cast<std::int64_t>(i);
    }
  }
  return std::nullopt;
}

bool is_empty(const Option& option) {
  const auto lendable = lendable_memory(*option.device);
  return option.free_bytes && lendable && *option.free_bytes >= *lendable;
}

void sort_to_fill(std::vector<Option>& options) {
  sort_by(options, [](const Option& o) { return signed_reading(o.free_bytes, 1); });
  std::ranges::stable_partition(options, [](const Option& o) { return !is_empty(o); });
}

/// Puts the options into the order of the request, the best first.
void sort_options(std::vector<Option>& options, const Request& request, const Snapshot& snapshot) {
  switch (request.order) {
    case Order::random:
      return shuffle(options, request.seed.value_or(0));
    case Order::best_fit:
      return sort_by(options, [](const Option& o) { return signed_reading(o.free_bytes, 1); });
    case Order::worst_fit:
      return sort_by(options, [](const Option& o) { return signed_reading(o.free_bytes, -1); });
    case Order::coolest:
      return sort_by(options, [](const Option& o) { return signed_reading(o.device->temperature_c, 1); });
    case Order::least_power:
      return sort_by(options, [](const Option& o) { return signed_reading(o.device->power_mw, 1); });
    case Order::most_capable:
      sort_by(options, [](const Option& o) { return signed_reading(o.free_bytes, -1); });
      sort_by(options, [](const Option& o) { return signed_reading(o.device->memory.total_bytes, -1); });
      return sort_by(options,
                     [](const Option& o) { return signed_reading(o.device->compute_capability, -1); });
    case Order::listed:
      return sort_by(options, [&](const Option& o) {
        return place_in_list(*o.device, request.admitted.value_or(request.devices), snapshot);
      });
    case Order::automatic:
      return fills(request) ? sort_to_fill(options) : void();
    case Order::index:
    case Order::topology:
      return;
  }
}

/// Keeps what the topology makes the best.
void keep_by_topology(std::vector<Option>& options, const Request& request, const Topology& topology) {
  std::vector<std::string> uuids;
  for (const Option& option : options) uuids.push_back(option.device->uuid);
  const PairScores scores(uuids, topology);
  const std::vector<std::size_t> best =
      request.count == 1 ? std::vector{least_connected(scores)} : best_connected(scores, request.count);
  std::vector<Option> kept;
  for (const std::size_t place : best) kept.push_back(options[place]);
  options = std::move(kept);
}

/// If a job asks for a device without any condition, it should get a GPU, not a slice of one.
void prefer_whole_gpus(std::vector<Option>& options) {
  const auto is_slice = [](const Option& option) { return option.device->mig.has_value(); };
  if (std::all_of(options.begin(), options.end(), is_slice)) return;
  std::erase_if(options, is_slice);
}

/// A device with faulty memory is worse than one on which runs have died.
std::pair<bool, unsigned> badness_of(const Option& option) {
  return {has_blemish(*option.device), option.bad_runs};
}

/// Drops the worst devices, as long as enough are left. Returns how bad the worst of the rest is:
/// all devices that are better will be taken. nullopt: the user's own list gives the order.
std::optional<std::pair<bool, unsigned>> drop_the_worse(std::vector<Option>& options,
                                                        const Request& request) {
  if (request.order == Order::listed || request.count == 0 || options.empty()) return std::nullopt;
  std::vector<std::pair<bool, unsigned>> each;
  for (const Option& option : options) each.push_back(badness_of(option));
  std::ranges::sort(each);
  const auto worst = each[std::min<std::size_t>(request.count, each.size()) - 1];
  std::erase_if(options, [&](const Option& option) { return badness_of(option) > worst; });
  return worst;
}

}  // namespace

ReadingSet readings_in_case_of_choice(const Request& request) {
  return by_topology(request) ? ReadingKind::known_topology : ReadingSet();
}

ReadingSet readings_to_choose(const Request& request, const std::vector<Verdict>& verdicts) {
  const auto free_count =
      std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.free(); });
  if (topology_decides(request, static_cast<std::size_t>(free_count))) return ReadingKind::topology;
  return {};
}

Choice choose(const Request& request, const std::vector<Verdict>& verdicts, const Snapshot& snapshot) {
  Choice choice;
  std::vector<Option> options = options_of(verdicts, snapshot);
  if (request.count == 1 && request.order == Order::automatic) prefer_whole_gpus(options);
  const auto worst = drop_the_worse(options, request);
  const auto is_better = [&](const Option& option) { return worst && badness_of(option) < *worst; };
  const bool takes_all_better = std::ranges::any_of(options, is_better);
  if (!takes_all_better && topology_decides(request, options.size())) {
    if (snapshot.topology) {
      keep_by_topology(options, request, *snapshot.topology);
    } else {
      choice.notes.emplace_back(kNoTopology);
    }
  }
  sort_options(options, request, snapshot);
  if (takes_all_better) std::ranges::stable_partition(options, is_better);
  if (options.size() > request.count) options.resize(request.count);
  std::sort(options.begin(), options.end(),
            [](const Option& a, const Option& b) { return std::less<>()(a.device, b.device); });
  for (const Option& option : options) choice.uuids.push_back(option.device->uuid);
  return choice;
}

// Each way to loosen changes one point of the request, and what it finds is judged anew before it
// is suggested: a suggestion that fails is worse than none.

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
            count == 1 ? "on a GPU that one other process also uses"
                       : fmt::format("on a GPU that up to {} other processes also use", count),
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

namespace {

bool has_lost_a_lease(const std::string& uuid, const Ledger& before, const Ledger& now) {
  return std::ranges::any_of(leases_on(before, uuid), [&](const Ticket* lease) {
    return find_ticket(now, lease->id, TicketPhase::granted) == nullptr;
  });
}

// Came after the driver was asked, and was killed.
bool has_a_new_dead_lease(const std::string& uuid, const Ledger& before, const Ledger& now) {
  return std::ranges::any_of(now.ended, [&](const Ticket& ended) {
    return std::ranges::find(ended.devices, uuid) != ended.devices.end() &&
           std::ranges::find(before.ended, ended.id, &Ticket::id) == before.ended.end();
  });
}

std::set<TicketId> lease_ids(const Ledger& ledger) {
  std::set<TicketId> ids;
  for (const Ticket& ticket : ledger.tickets) {
    if (ticket.phase == TicketPhase::granted) ids.insert(ticket.id);
  }
  return ids;
}

}  // namespace

bool may_have_ended_on(const Choice& choice, const NotedLeases& before, const NotedLeases& now) {
  if (before.changes != 0 && before.changes != now.changes) return true;
  return std::ranges::any_of(choice.uuids, [&](const std::string& uuid) {
    return has_lost_a_lease(uuid, before.ledger, now.ledger) ||
           has_a_new_dead_lease(uuid, before.ledger, now.ledger);
  });
}

bool same_leases(const Ledger& a, const Ledger& b) {
  return lease_ids(a) == lease_ids(b);
}

}  // namespace berth
