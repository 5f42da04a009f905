#include "berth/request/request.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "berth/base/record.h"
#include "berth/base/text.h"

namespace berth {
namespace {

constexpr std::size_t kLongestHostName = 253 + 64;  // a name of DNS, after a user's and "@"
constexpr std::string_view kHostCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:[]%";
constexpr std::string_view kProgramCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/~+";

std::string all_names(const std::vector<LabHost>& hosts) {
  std::string names;
  for (const LabHost& each : hosts) names += (names.empty() ? "" : ", ") + each.name;
  return names;
}

Result<void> are_known(const std::vector<LabHost>& hosts, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::ranges::find(hosts, name, &LabHost::name) != hosts.end()) continue;
    return fail(ErrorCode::usage, "no host is called '{}'; there are {}", printable(name), all_names(hosts));
  }
  return {};
}

}  // namespace

bool is_hub_url(std::string_view hosts) {
  return hosts.contains("://");
}

Result<void> check_host_name(std::string_view name) {
  const std::string_view host = name.substr(name.rfind('@') + 1);
  if (name.empty() || host.empty()) return fail(ErrorCode::usage, "a host needs a name");
  if (name.starts_with('-') || host.starts_with('-'))
    return fail(ErrorCode::usage, "'{}' is no name of a host: ssh would take it for an option",
                printable(name));
  if (name.size() > kLongestHostName || name.find_first_not_of(kHostCharacters) != std::string_view::npos)
    return fail(ErrorCode::usage,
                "'{}' is no name of a host: it may have letters, digits and . _ - @ : [ ] %",
                printable(name.substr(0, kLongestHostName)));
  return {};
}

Result<void> check_host_program(std::string_view program) {
  if (!program.empty() && !program.starts_with('-') &&
      program.find_first_not_of(kProgramCharacters) == std::string_view::npos)
    return {};
  return fail(ErrorCode::usage,
              "'{}' is no path of a program on a host: it may have letters, digits and . _ - / ~ +",
              printable(program));
}

Result<ConnectionLife> connection_from_text(std::string_view text) {
  if (text == "kept") return ConnectionLife::kept;
  if (text == "each") return ConnectionLife::each;
  return fail(ErrorCode::usage, "must be \"kept\" or \"each\"");
}

Result<std::vector<LabHost>> lab_hosts_from_text(std::string_view text) {
  std::vector<LabHost> hosts;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    BERTH_DO(check_host_name(name));
    if (std::ranges::find(hosts, name, &LabHost::name) != hosts.end())
      return fail(ErrorCode::usage, "names {} twice", name);
    hosts.push_back({std::string(name)});
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<LabHost>> selected_hosts(std::vector<LabHost> hosts, const std::vector<std::string>& only,
                                            const std::vector<std::string>& without) {
  BERTH_DO(are_known(hosts, only));
  BERTH_DO(are_known(hosts, without));
  std::erase_if(hosts, [&](const LabHost& host) {
    const bool named = only.empty() || std::ranges::find(only, host.name) != only.end();
    return !named || std::ranges::find(without, host.name) != without.end();
  });
  if (hosts.empty()) return fail(ErrorCode::usage, "no host is left: --not-host excludes all of them");
  return hosts;
}

namespace {

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (text.empty() || error != std::errc() || end != last) return std::nullopt;
  return value;
}

/// The forms that a selector can have, taken apart once.
struct Selector {
  std::string_view text;
  std::optional<unsigned> index;
  std::optional<unsigned> slot;
  bool is_uuid = false;
  bool is_pci = false;

  explicit Selector(std::string_view selector) : text(trimmed(selector)), index(number(text)) {
    is_uuid = begins_with_text(text, "GPU-") || begins_with_text(text, "MIG-");
    const std::size_t colon = text.find(':');
    is_pci = colon != std::string_view::npos && text.find('.') != std::string_view::npos;
    if (is_uuid || is_pci || colon == std::string_view::npos) return;
    index = number(text.substr(0, colon));
    slot = number(text.substr(colon + 1));
    if (!slot) index.reset();
  }

  bool names(const Device& device) const {
    if (is_uuid) return begins_with_text(device.uuid, text) || same_text(path_text(device), text);
    if (is_pci) return !device.mig && ends_with_bus(device.pci_bus_id);
    if (!index || device.index != *index) return false;
    return slot ? device.mig && device.mig->slot == *slot : !device.mig;
  }

 private:
  bool ends_with_bus(std::string_view bus) const {
    if (text.size() > bus.size() || !same_text(bus.substr(bus.size() - text.size()), text)) return false;
    return text.size() == bus.size() || bus[bus.size() - text.size() - 1] == ':';
  }

  /// How drivers before R470 called a MIG instance, and CUDA still understands.
  static std::string path_text(const Device& device) {
    if (!device.mig || !device.mig->gpu_instance || !device.mig->compute_instance) return "";
    return fmt::format("MIG-{}/{}/{}", device.mig->parent_uuid, *device.mig->gpu_instance,
                       *device.mig->compute_instance);
  }
};

/// The places that bear this name, a split GPU as itself. A whole UUID is not the beginning of
/// another.
std::vector<std::size_t> bearers(const Selector& selector, const Snapshot& snapshot) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    const Device& device = snapshot.devices[i];
    if (!selector.names(device)) continue;
    if (selector.is_uuid && same_text(device.uuid, selector.text)) return {i};
    indices.push_back(i);
  }
  return indices;
}

std::vector<std::size_t> with_instances(const std::vector<std::size_t>& indices, const Snapshot& snapshot) {
  std::vector<std::size_t> result;
  for (const std::size_t place : indices) {
    const Device& device = snapshot.devices[place];
    if (!is_split(device)) result.push_back(place);
    for (std::size_t i = 0; is_split(device) && i < snapshot.devices.size(); ++i) {
      const Device& other = snapshot.devices[i];
      if (other.mig && other.mig->parent_uuid == device.uuid) result.push_back(i);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::string what_there_is(const Snapshot& snapshot) {
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (!is_split(snapshot.devices[i])) usable.push_back(i);
  }
  if (usable.empty()) return "this machine has no device";
  return fmt::format("this machine has {}", labels_of(usable, snapshot));
}

// "0-3" is the indices 0 to 3; everything else stands for itself.
Result<std::vector<std::string>> devices_in(std::string_view one) {
  const std::size_t dash = one.find('-');
  const auto first = number_from_text<unsigned>(one.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? std::nullopt : number_from_text<unsigned>(one.substr(dash + 1));
  if (!first || !last) return std::vector<std::string>{std::string(one)};
  constexpr unsigned kMostDevices = 1024;
  if (*last < *first || *last - *first >= kMostDevices)
    return fail(ErrorCode::usage, "a range goes from the lower index to the higher: 0-3");
  std::vector<std::string> indices;
  for (unsigned index = *first; index <= *last; ++index) indices.push_back(std::to_string(index));
  return indices;
}

}  // namespace

bool is_index(std::string_view selector) {
  return number(trimmed(selector)).has_value();
}

std::vector<std::size_t> devices_named(std::string_view selector, const Snapshot& snapshot) {
  return with_instances(bearers(Selector(selector), snapshot), snapshot);
}

Result<std::vector<std::size_t>> resolve_selector(std::string_view text, const Snapshot& snapshot) {
  const Selector selector(text);
  if (!selector.index && !selector.is_uuid && !selector.is_pci) {
    return fail(ErrorCode::usage,
                "\"{}\" names no device: expected an index (3), a MIG instance (3:1), "
                "a UUID (GPU-…) or its beginning, or a PCI bus id; {}",
                printable(text), what_there_is(snapshot));
  }
  const std::vector<std::size_t> found = bearers(selector, snapshot);
  if (found.empty()) {
    return fail(ErrorCode::usage, "there is no device \"{}\": {}", printable(text), what_there_is(snapshot));
  }
  if (found.size() > 1) {
    return fail(ErrorCode::usage, "\"{}\" is the beginning of {} UUIDs (devices {}): write more of it",
                printable(text), found.size(), labels_of(found, snapshot));
  }
  std::vector<std::size_t> usable = with_instances(found, snapshot);
  if (usable.empty()) {
    return fail(ErrorCode::usage, "GPU {} is in MIG mode and has no instance: {}",
                label(snapshot.devices[found.front()]), what_there_is(snapshot));
  }
  return usable;
}

Result<std::vector<std::string>> uuids_named(const std::vector<std::string>& selectors,
                                             const Snapshot& snapshot) {
  std::vector<std::string> uuids;
  for (const std::string& selector : selectors) {
    BERTH_LET(const auto indices, resolve_selector(selector, snapshot));
    for (const std::size_t index : indices) uuids.push_back(snapshot.devices[index].uuid);
  }
  return uuids;
}

bool counts_devices(std::string_view selector) {
  return Selector(selector).index.has_value();
}

std::vector<std::string> as_uuids(const std::vector<std::string>& selectors, const Snapshot& snapshot) {
  std::vector<std::string> uuids;
  for (const std::string& selector : selectors) {
    const auto named =
        counts_devices(selector) ? bearers(Selector(selector), snapshot) : std::vector<std::size_t>{};
    const bool is_known = named.size() == 1 && !snapshot.devices[named.front()].uuid.empty();
    uuids.push_back(is_known ? snapshot.devices[named.front()].uuid : selector);
  }
  return uuids;
}

Result<std::vector<std::string>> selectors_from_text(std::string_view text) {
  std::vector<std::string> selectors;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    if (one.empty() || one.find_first_of(" \t") != std::string_view::npos) {
      return fail(ErrorCode::usage,
                  "must be indices or UUIDs with commas between: 0,1 or 0-3 or 3:1 or GPU-5a1c");
    }
    BERTH_LET(const auto named, devices_in(one));
    for (const std::string& each : named) {
      if (std::ranges::find(selectors, each) != selectors.end())
        return fail(ErrorCode::usage, "names {} twice", printable(each));
      selectors.push_back(each);
    }
    if (comma == std::string_view::npos) return selectors;
    text.remove_prefix(comma + 1);
  }
}

std::string labels_of(const std::vector<std::size_t>& indices, const Snapshot& snapshot) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    const Device& first = snapshot.devices[indices[i]];
    // Three and more GPUs in a row are a range.
    std::size_t run = 1;
    while (!first.mig && i + run < indices.size() && !snapshot.devices[indices[i + run]].mig &&
           snapshot.devices[indices[i + run]].index == first.index + run) {
      ++run;
    }
    if (!text.empty()) text += ", ";
    text += label(first);
    if (run >= 3) text += fmt::format("-{}", label(snapshot.devices[indices[i + run - 1]]));
    i += run >= 3 ? run : 1;
  }
  return text;
}

namespace {

/// The tightest thresholds on one field, and who set them.
struct Bounds {
  std::optional<Threshold> low, high;
  std::string low_text, high_text;
};

bool tighter(const Threshold& a, const std::optional<Threshold>& b) {
  if (!b) return true;
  if (a.value != b->value) return a.at_least ? a.value > b->value : a.value < b->value;
  return a.strict && !b->strict;
}

bool contradict(const Bounds& bounds) {
  if (!bounds.low || !bounds.high) return false;
  const double low = bounds.low->value, high = bounds.high->value;
  return low > high || (low == high && (bounds.low->strict || bounds.high->strict));
}

Result<void> check_conditions(const std::vector<Expression>& conditions) {
  // Shares and amounts of memory cannot be compared without a device.
  std::map<std::pair<std::string, bool>, Bounds> fields;
  for (const Expression& condition : conditions) {
    for (const Expression& part : condition.conjuncts()) {
      const std::optional<Threshold> threshold = part.threshold();
      if (!threshold) continue;
      Bounds& bounds = fields[{threshold->field, threshold->share}];
      auto& bound = threshold->at_least ? bounds.low : bounds.high;
      if (!tighter(*threshold, bound)) continue;
      bound = threshold;
      (threshold->at_least ? bounds.low_text : bounds.high_text) = part.text();
    }
  }
  for (const auto& [field, bounds] : fields) {
    if (contradict(bounds)) {
      return fail(ErrorCode::usage, "the request contradicts itself: no device can have {} and {}",
                  bounds.low_text, bounds.high_text);
    }
  }
  return {};
}

}  // namespace

ReadingSet Request::readings() const {
  // Names are needed to know whether a runtime may count the devices otherwise, process details to
  // say who stands in the way and to know the programs and users that the site does not count.
  ReadingSet set =
      ReadingKind::name | ReadingKind::memory | ReadingKind::processes | ReadingKind::process_details;
  set |= ReadingKind::compute_mode | ReadingKind::mig | ReadingKind::health;
  for (const Expression& condition : conditions) set |= condition.readings();
  if (order == Order::coolest) set |= ReadingKind::temperature;
  if (order == Order::least_power) set |= ReadingKind::power;
  if (order == Order::most_capable) set |= ReadingKind::capability;
  const auto by_bus = [](const std::string& selector) { return selector.find('.') != std::string::npos; };
  if (std::any_of(devices.begin(), devices.end(), by_bus) ||
      std::any_of(exclude.begin(), exclude.end(), by_bus)) {
    set |= ReadingKind::pci;
  }
  return set;
}

unsigned usual_count(const Request& request) {
  return request.devices.empty() ? 1U : static_cast<unsigned>(request.devices.size());
}

bool asks_memory_by_runs(const Request& request) {
  return request.promise_bytes == kMemoryByRuns;
}

Request with_memory(Request request, std::optional<std::uint64_t> bytes) {
  request.shared = bytes.has_value();
  request.promise_bytes = bytes.value_or(0);
  return request;
}

Result<void> check_time(std::int64_t seconds) {
  if (seconds >= 1 && seconds <= kLongestTimeS) return {};
  return fail(ErrorCode::usage, "a time must be at least 1s and at most 365d; leave it out for no limit");
}

Result<void> check_yield(std::int64_t seconds) {
  if (seconds >= 1 && seconds <= kLongestYieldS) return {};
  return fail(ErrorCode::usage, "the grace of a job that yields must be at least 1s and at most 1h");
}

Result<void> check(const Request& request) {
  if (request.count == 0) return fail(ErrorCode::usage, "a request for 0 devices: ask for at least 1");
  if (request.count > kMostDevices) {
    return fail(
        ErrorCode::usage,
        "{} GPUs are asked for, and a lease holds {} at most; `berth list` shows how many this machine has",
        request.count, kMostDevices);
  }
  if (request.promise_bytes > 0 && !request.shared) {
    return fail(ErrorCode::usage, "memory can be promised only on a shared device, not on a whole one");
  }
  if (request.clean && (request.shared || request.allowed_processes > 0))
    return fail(
        ErrorCode::usage,
        "--clean is a GPU on which nobody else computes: leave out --memory, --shared and --processes");
  if (request.time_s) BERTH_DO(check_time(*request.time_s));
  if (request.mps_percent > 100) return fail(ErrorCode::usage, "--mps-percent is at most 100");
  if (request.yield_s) BERTH_DO(check_yield(*request.yield_s));
  for (const std::string& device : request.devices) {
    for (const std::string& excluded : request.exclude) {
      if (same_text(device, excluded)) {
        return fail(ErrorCode::usage, "device {} is both asked for and excluded", device);
      }
    }
  }
  return check_conditions(request.conditions);
}

}  // namespace berth
