#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"

namespace berth {

/// What an expression may ask of a device. `free_bytes` is the free memory as leases count it, not
/// as the driver does (see verdict.h).
struct DeviceFacts {
  const Device& device;
  Reading<std::uint64_t> free_bytes;
  const HostFacts* host = nullptr;  ///< null: not known
};

/// Why an expression does not hold.
struct Unmet {
  std::string condition;  ///< the part that failed, as text: "free >= 20G"
  std::string actual;     ///< what was found: "11.2 GiB"; "not available"; if the part has several
                          ///< comparisons, with their fields: "util 40 %, temp 81 C"

  bool operator==(const Unmet&) const = default;
};

/// An expression that is one comparison of a number with <, <=, > or >=.
struct Threshold {
  std::string field;      ///< "free"
  bool at_least = false;  ///< > or >=; else < or <=
  bool strict = false;    ///< > or <
  bool share = false;     ///< `value` is a percentage of the device's total memory
  double value = 0;       ///< bytes, percent, °C, W, MHz, a number, or 10 × a compute capability
};

struct ExpressionNode;

/// A condition on a device: `name~A100 and free>=20G and (util<=5 or temp<80)`. docs/expressions.md
/// describes the language. A value; parsing and evaluation are pure. An expression that was made
/// without text always holds.
class Expression {
 public:
  /// Error: `usage`, with the text, the column and what was expected there.
  static Result<Expression> parse(std::string_view text);

  /// `text`, quoted so that it stands for exactly this text as a value in an expression.
  static std::string quoted(std::string_view text);
  /// The text that a quoted one stands for; a text without quotes as it is.
  static std::string unquoted(std::string_view text);

  /// nullopt: the expression holds. Otherwise the first part that makes it fail. If a reading is
  /// absent, the comparison that needs it fails, and so does the opposite comparison.
  std::optional<Unmet> unmet_by(const DeviceFacts& facts) const;

  /// The part that can never hold on this device of this host, whatever its changing readings (free
  /// memory, utilisation …) will be: `name~H100` on an A100, `free>=100G` on a card with 80.
  /// nullopt: the expression may hold some time.
  std::optional<Unmet> never_met_by(const Device& device, const HostFacts* host = nullptr) const;

  /// The readings that its fields need.
  ReadingSet readings() const;
  /// Its parts joined by "and" at the top level: `a and (b or c)` gives two.
  std::vector<Expression> conjuncts() const;

  /// nullopt: it is not a single threshold.
  std::optional<Threshold> threshold() const;
  /// The same threshold with another round number, changed no more than needed for `facts` to meet
  /// it. nullopt: it is not a threshold, the reading is absent, or no threshold would be left (free
  /// >= 0).
  std::optional<Expression> loosened_for(const DeviceFacts& facts) const;

  /// As parsed, with uniform space. Parses to the same expression.
  const std::string& text() const { return text_; }

 private:
  explicit Expression(std::shared_ptr<const ExpressionNode> root);

  std::shared_ptr<const ExpressionNode> root_;
  std::string text_;

 public:
  Expression() = default;
};

/// The condition that a filter is short for: "free" and "20G" is `free>=20G`. The filters are name
/// (contains this text), free and total (at least this much memory), and util and mem_util
/// (percent), power (W) and temp (°C), each at most this value. Error: `usage`, with what the value
/// must be, or because there is no such filter.
Result<Expression> filter(std::string_view name, std::string_view value);

/// The value with which this filter gives this condition; "": it gives no such condition.
std::string filter_value(std::string_view name, const Expression& condition);

/// A machine of a lab, as ssh knows it.
struct LabHost {
  std::string name;               ///< "gpu1", "alice@gpu1", or a Host of ssh's configuration
  std::string program = "berth";  ///< how Berth is called there

  bool operator==(const LabHost&) const = default;
};

/// What becomes of a connection to a machine of a lab after it has served.
enum class ConnectionLife {
  kept,  ///< it stays for a minute, for whatever is asked there next
  each,  ///< it ends, and each call makes its own
};

/// Reads "kept" or "each". Error: `usage`.
Result<ConnectionLife> connection_from_text(std::string_view text);

/// A hub that knows the machines of a lab, and how to ask it.
struct HubAccess {
  std::string url;           ///< "https://hub:8420"; "": none
  std::string token_file{};  ///< a path; "": no token
  std::string ca_file{};     ///< the authorities that may sign its certificate; "": the system's
  bool insecure = false;     ///< ask over plain HTTP without a token

  bool operator==(const HubAccess&) const = default;
};

/// Whether a user who says this as the hosts means those of a hub: a URL.
bool is_hub_url(std::string_view hosts);

/// Checks the name of a host: ssh must not take it for an option, nor a shell for more than one
/// word. Error: `usage`.
Result<void> check_host_name(std::string_view name);

/// Checks the program that is called there: a path, without characters that mean something to a
/// shell.
Result<void> check_host_program(std::string_view program);

/// Reads "gpu1,gpu2,alice@gpu3". Error: `usage`, also if a name comes twice.
Result<std::vector<LabHost>> lab_hosts_from_text(std::string_view text);

/// The hosts that `only` names (if it is empty: all), without those in `without`. Error: `usage`
/// for a name that no host has, and if no host is left.
Result<std::vector<LabHost>> selected_hosts(std::vector<LabHost> hosts, const std::vector<std::string>& only,
                                            const std::vector<std::string>& without);

/// The places in snapshot.devices of the devices that `selector` names, ascending; empty if it
/// names none. A selector is an index ("3"), a MIG instance ("3:1": slot 1 of GPU 3), a UUID or the
/// beginning of one ("GPU-5d0b", also "MIG-GPU-UUID/GI/CI"), or a PCI bus id ("0000:07:00.0",
/// "07:00.0"). A GPU that is split by MIG means its instances. A beginning that fits several
/// devices names them all.
std::vector<std::size_t> devices_named(std::string_view selector, const Snapshot& snapshot);

/// The same for a selector that a user typed. Error: `usage`, with the devices that there are, if
/// it names none or several.
Result<std::vector<std::size_t>> resolve_selector(std::string_view selector, const Snapshot& snapshot);

/// The UUIDs of the devices that the selectors name together. Error: as resolve_selector.
Result<std::vector<std::string>> uuids_named(const std::vector<std::string>& selectors,
                                             const Snapshot& snapshot);

/// These selectors with the UUID of the device in the place of each index (3) and MIG instance
/// (3:1), to be kept for later: an index means another device once a card before it is gone. A
/// split GPU is named itself, and not its instances. What names no device, or one without a UUID,
/// stays as it is.
std::vector<std::string> as_uuids(const std::vector<std::string>& selectors, const Snapshot& snapshot);

/// True if `selector` is an index or a MIG instance by its index, so what it means depends on which
/// cards are there.
bool counts_devices(std::string_view selector);

/// "0-3, 5, 6:1": the labels of these places.
std::string labels_of(const std::vector<std::size_t>& indices, const Snapshot& snapshot);

/// The selectors of "0,1", "0-3" (the indices 0 to 3), "3:1" or "GPU-5a1c,GPU-77". Error: `usage`
/// if one is empty or named twice.
Result<std::vector<std::string>> selectors_from_text(std::string_view text);

/// True if `selector` is a non-negative number.
bool is_index(std::string_view selector);

/// Which of the fitting devices to take.
enum class Order {
  automatic,     ///< one device: least affinity to the other free ones; several: topology
  index,         ///< lowest index first
  random,        ///< drawn with Request::seed
  best_fit,      ///< least free memory that fits
  worst_fit,     ///< most free memory
  coolest,       ///< lowest temperature
  least_power,   ///< lowest power draw
  most_capable,  ///< highest compute capability, then most memory in total, then most free
  topology,      ///< the best connected set that leaves the rest best connected
  listed,        ///< as Request::admitted, else Request::devices lists them
};

/// As on the command line.
constexpr auto words_of(Order) {
  return std::to_array<std::string_view>({"auto", "index", "random", "best-fit", "worst-fit", "coolest",
                                          "least-power", "most-capable", "topology", "listed"});
}

/// The longest time limit of a request: a year. A request that needs longer has no time limit.
inline constexpr std::int64_t kLongestTimeS = 365LL * 24 * 3600;

/// The most devices of one request, and so of one lease: as many as a ticket surely names, whatever
/// else it says (ticket_codec.cpp). Eight GPUs of seven MIG instances have so many.
inline constexpr unsigned kMostDevices = 56;

/// What a user asks for. Every filter (`--name`, `--free`, `--where` …) is a condition, and all
/// conditions must hold.
struct Request {
  unsigned count = 1;
  std::vector<Expression> conditions;  ///< all must hold; judged in this order
  std::vector<std::string> devices;    ///< selectors to choose among; empty: all
  std::vector<std::string> exclude;    ///< selectors never to choose
  /// UUIDs of the devices that the asking program itself admits, the best first; nullopt: it has
  /// not looked.
  std::optional<std::vector<std::string>> admitted;
  Order order = Order::automatic;
  std::optional<std::uint64_t> seed;  ///< for Order::random; the caller fills it in
  bool shared = false;                ///< the lease may share its devices with other leases
  std::uint64_t promise_bytes = 0;    ///< if shared: memory needed on each device
  unsigned allowed_processes = 0;     ///< `--processes N`: outsiders that may already be there
  /// `--time`: how long the lease lasts at most, from its grant on. nullopt: the request does not
  /// say.
  std::optional<std::int64_t> time_s{};
  /// `--yield`: the request waits behind requests that do not yield, and its lease ends for them,
  /// with this time between SIGTERM and SIGKILL. nullopt: it does not yield.
  std::optional<std::int64_t> yield_s{};
  /// `--mps-percent`: the job uses at most so much of a GPU's processors, where MPS serves it. 0:
  /// the request does not say.
  unsigned mps_percent = 0;
  /// `--clean`: a whole GPU on which nobody else computes, whatever the site ignores; and the run
  /// is looked at from its start on, so that its receipt can say whether it stayed so.
  bool clean = false;
  /// The asking process computes on the device already, so no waiting request could have it: this
  /// request waits behind nobody.
  bool adopts_running_process = false;

  /// The readings that are needed to judge this request and to order devices by it, and no others.
  /// Topology is not among them: whether it is needed is known only after judging
  /// (`readings_to_choose`, verdict.h).
  ReadingSet readings() const;
};

/// How many devices are meant if the user does not say: as many as `--devices` names, or one.
unsigned usual_count(const Request& request);

/// `--memory auto`, in the place of the bytes that are promised: as much as earlier runs of the
/// command had in use. Whoever knows the command settles it by `with_memory` before the request is
/// made.
inline constexpr std::uint64_t kMemoryByRuns = std::numeric_limits<std::uint64_t>::max();
bool asks_memory_by_runs(const Request& request);
/// The request for a share of this size, or for whole devices.
Request with_memory(Request request, std::optional<std::uint64_t> bytes);

/// The grace of a request that yields, if it does not say: --yield; and the longest.
inline constexpr std::int64_t kUsualYieldS = 30;
inline constexpr std::int64_t kLongestYieldS = 3600;

/// Checks the request itself, whatever the machine: it asks for no devices or more than
/// kMostDevices, two conditions that no number can
/// meet, a promise without `shared` … Error: `usage`.
Result<void> check(const Request& request);

/// Checks a time limit. Error: `usage`.
Result<void> check_time(std::int64_t seconds);
Result<void> check_yield(std::int64_t seconds);

/// Whether the masks in this process's environment limit which devices it can be given.
enum class MaskUse { inherit, ignore };

/// The variables that mask a vendor's devices, as they are in a process's environment, by name.
using MaskVariables = std::map<std::string, std::string, std::less<>>;

/// The devices of one vendor that a mask leaves visible, as the vendor's runtime would read it.
struct Mask {
  std::string text;                ///< the value as found
  std::vector<std::string> uuids;  ///< visible devices, in the mask's order
  std::vector<std::string> notes;  ///< which entries were cut off or ignored, and why
  std::string vendor{kUntoldVendor};

  bool operator==(const Mask&) const = default;
};

/// Reads the masks against a snapshot, one for each vendor that has a variable set and a device
/// here. A list is cut at its first invalid entry, as the runtimes do, and `notes` says so. An
/// index means the driver's number. If the runtime may count otherwise (see
/// numbering_is_ambiguous), `notes` says that.
std::vector<Mask> resolve_masks(const MaskVariables& variables, const Snapshot& snapshot);

/// True if the vendor's runtime may number its devices otherwise than the driver does: the runtime
/// has an order of its own, the variables do not set the driver's order, and the models differ.
bool numbering_is_ambiguous(const Vendor& vendor, const Snapshot& snapshot, const MaskVariables& variables);

/// Only the devices of the vendor, counted from 0 as the vendor's runtime counts them.
Snapshot devices_of_vendor(const Snapshot& snapshot, std::string_view vendor);

/// Whether all devices are of one vendor.
bool is_of_one_vendor(const Snapshot& snapshot);

/// True if each GPU of the vendor has the same number with its runtime as with the driver, once the
/// order variable is set. Runtimes do not count a GPU that is lost, hidden or split by MIG. So the
/// GPUs after such a GPU have another number with the runtime, and only a UUID names the same GPU
/// to driver and runtime.
bool runtime_counts_as_the_driver(const Vendor& vendor, const Snapshot& snapshot);

/// The variables in the environment of a job that show it its devices and no others.
struct JobMask {
  std::string vendor;
  std::string visible;  ///< the value of the vendor's mask variable
  /// Indices as the vendor's runtime counts them; else UUIDs.
  bool by_index = true;
  std::vector<std::pair<std::string, std::string>> variables;  ///< names and values, the mask first
  /// The variables that must not be set, because the runtime would choose among the job's devices
  /// by them. A variable that hides devices of another vendor here stays.
  std::vector<std::string> unset;
};

/// The mask for these devices, in their order: indices, or UUIDs if they are asked for or if one
/// device is a MIG instance, which has no index of its own. If a mask cannot hold the UUID of a
/// device, the mask has indices all the same. REQUIRES: the devices are of one vendor.
JobMask job_mask(const std::vector<std::string>& uuids, const Snapshot& snapshot, bool by_uuid = false);

/// Adds what bounds the job of this request, which has got so many devices: the memory of its share
/// of each, and the part of their processors that it asked for, where the vendor has such
/// variables. Only CUDA under MPS obeys them, so they promise nothing to the neighbours.
void bound_job(JobMask& mask, std::size_t devices, const Request& request);

/// Whether the runtime of the device's vendor accepts the device's UUID in a mask.
bool fits_mask(const Device& device);

/// The index of the device as its vendor's runtime and tools count. They count the devices of their
/// vendor from 0; our indices count all devices of the machine.
unsigned index_in_vendor(const Device& device, const Snapshot& snapshot);

/// The numbers by which the vendor's runtime finds these devices in a program that starts now. It
/// does not count a device that is lost, hidden or split by MIG. nullopt for a device: it is not
/// counted. nullopt for all: a device of the vendor does not answer, so the numbers are not known.
std::optional<std::vector<std::optional<unsigned>>> runtime_indices(const std::vector<std::string>& uuids,
                                                                    const Snapshot& snapshot);

/// What to tell a user who puts this mask into an environment that has these variables: that the
/// runtime may count otherwise, and what helps. nullopt: nothing.
std::optional<std::string> numbering_note(const JobMask& mask, const Snapshot& snapshot,
                                          const MaskVariables& variables);

/// The number by which the runtime knows each of these devices, in a process with these variables.
/// nullopt: the mask hides the device, or its number is not known, because the numbering is
/// ambiguous and no mask of UUIDs says the order.
std::vector<std::optional<std::size_t>> ordinals(const std::vector<std::string>& uuids,
                                                 const Snapshot& snapshot, const MaskVariables& variables);

}  // namespace berth
