#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/device/device.h"
#include "berth/verdict/ledger.h"

// What looks at a machine come to that are made again and again while a command runs.
namespace berth {

/// A process that computed on a whole device of a lease, and was none of the lease.
struct Outsider {
  std::string device;  ///< its label
  std::uint32_t pid = 0;
  std::string user;          ///< "": it cannot be seen from here whose it was
  std::string command;       ///< its beginning; "": likewise
  std::int64_t seen_ms = 0;  ///< as many samples as it was seen in, times the interval

  bool operator==(const Outsider&) const = default;
};

/// Its section and its fields in a record (base/record_fields.h), which keeps an older word.
inline constexpr std::string_view kOutsider = "stranger";
inline constexpr auto kFieldsOfOutsider = [](auto& outsider, auto&& field) {
  field("device", outsider.device);
  field("pid", outsider.pid);
  field("user", outsider.user);
  field("command", outsider.command);
  field("seen_ms", outsider.seen_ms);
};

inline constexpr std::int64_t kNotCounted = -1;

/// The samples of one device.
struct DeviceSamples {
  std::string uuid;
  /// The most memory that a sample saw, of a share that of its processes; absent: not told in any.
  Reading<std::uint64_t> peak_bytes{};
  std::uint64_t used = 0;  ///< the sum of the percentages in which a kernel ran
  unsigned use_samples = 0;
  unsigned throttled_samples = 0;
  unsigned throttle_samples = 0;
  /// By which number a program that starts now finds it (runtime_indices); kNotCounted: by none;
  /// absent: no sample could know.
  Reading<std::int64_t> runtime_index{};

  bool operator==(const DeviceSamples&) const = default;
};

/// The samples of one run.
struct RunSamples {
  std::int64_t every_ms = 0;  ///< what is shorter may have been missed
  unsigned samples = 0;
  std::vector<DeviceSamples> devices{};
  std::vector<Outsider> outsiders{};

  bool operator==(const RunSamples&) const = default;
};

/// A lease that is sampled.
struct SampledLease {
  TicketId lease{};
  bool shared = false;
  std::string path{};                  ///< with the leases around it, as BERTH_LEASE has it
  std::string machine{};               ///< the path of the machine's lease directory
  std::vector<std::string> devices{};  ///< their UUIDs
  std::int64_t every_ms = 0;
  UniqueProcess job{};  ///< as of its ticket

  bool operator==(const SampledLease&) const = default;
};

/// What people call a process: the user and the command.
using DescribeProcess = std::function<std::pair<std::string, std::string>(std::uint32_t pid)>;

/// Adds one look at the machine. `leases`: as Facts::process_leases. What the look does not tell
/// adds nothing. `describe`: is asked of each outsider once.
void add_sample(RunSamples& samples, const SampledLease& lease, const Snapshot& look,
                const std::multimap<std::uint32_t, TicketId>& leases, const DescribeProcess& describe);

/// Whether a mask of these indices, one for each of these devices, has changed its meaning: a
/// program that starts now would find other devices by it, or none.
bool is_renumbered(const RunSamples& samples, const std::vector<std::string>& uuids,
                   const std::vector<std::int64_t>& indices);

/// How long the sampler of a user waits for the next look of an agent before it looks itself.
inline constexpr std::int64_t kWaitsForAgentMs = 2000;

/// Whether a sampler that looks so often waits for an agent: a look that comes late must not be
/// missing before the next one.
bool may_wait_for_agent(std::int64_t every_ms);

/// The part of an agent's look that a sampler needs, which the driver tells every user too. What
/// only root can read of a process or in the kernel's log is not in it.
Snapshot look_for_samplers(const Snapshot& look);

/// Whether a look that an agent told takes the place of a sampler's own: the driver answered, and
/// was asked for all that the sampler would ask.
bool is_worth_own_look(const Snapshot& told);

/// What a sampler asks for.
ReadingSet readings_of_sampler();

/// Whether these bits of the driver say that the clocks are slower than they could be.
bool is_throttled(std::uint64_t reasons);

/// What the driver's accounting says of all processes of a run together on one device.
struct AccountedUse {
  Reading<std::uint64_t> peak_bytes{};
  Reading<unsigned> use_percent{};

  bool operator==(const AccountedUse&) const = default;
};

/// Of the processes that began in this span of the wall clock, but for the outsiders. The driver
/// tells the peak of each: of processes that lived at the same time it is the sum, which they may
/// never have reached at once.
AccountedUse accounted_use(std::span<const AccountedProcess> processes,
                           std::span<const std::uint32_t> outsiders, std::int64_t begun_us,
                           std::int64_t ended_us);

/// The records in which the two programs tell each other (base/record.h). Error: `failure`.
std::string encode_sampled_lease(const SampledLease& lease);
Result<SampledLease> decode_sampled_lease(std::string_view text);
std::string encode_run_samples(const RunSamples& samples);
Result<RunSamples> decode_run_samples(std::string_view text);

}  // namespace berth
