#include "berth/verdict/choice.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "berth/base/split_mix.h"
#include "berth/device/closest_devices.h"
#include "berth/device/health.h"
#include "berth/request/selector.h"
#include "berth/verdict/device_memory.h"

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

}  // namespace berth
