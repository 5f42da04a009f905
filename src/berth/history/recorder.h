#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/recorded.h"
#include "berth/history/observation.h"
#include "berth/history/sample.h"
#include "berth/history/thinning.h"

namespace berth::history {

/// A lease on one of its devices. The id alone comes again after a reboot.
struct LeaseKey {
  std::int64_t begun_s = 0;
  TicketId id;
  std::string uuid;
  auto operator<=>(const LeaseKey&) const = default;
};

struct Counted {
  double leased_s = 0;
  double used_s = 0;  ///< of these, with a process of the lease that computes on the device

  void add(const Counted& more) {
    leased_s += more.leased_s;
    used_s += more.used_s;
  }
  bool operator==(const Counted&) const = default;
};

struct LeaseChange {
  std::string user;
  std::optional<std::string> job;       ///< as LeaseSeen::job; nullopt also where it was told before
  std::optional<std::int64_t> ended_s;  ///< nullopt: it lives
  bool end_seen = true;                 ///< false: it ended at some time after `ended_s`, when nobody looked
  Counted more;                         ///< to be added to what is written
  std::optional<RecordedWish> wish{};   ///< nullopt: nothing new

  bool operator==(const LeaseChange&) const = default;
};

struct HourKey {
  std::int64_t hour_s = 0;  ///< at which it begins
  std::string user;
  std::string uuid;
  auto operator<=>(const HourKey&) const = default;
};

/// All jobs of a user with one name, on all devices.
struct JobHourKey {
  std::int64_t hour_s = 0;
  std::string user;
  std::string job;  ///< its name
  auto operator<=>(const JobHourKey&) const = default;
};

struct DeviceName {
  std::string label;
  std::string name;
  bool operator==(const DeviceName&) const = default;
};

/// What is to be written, as one step.
struct Batch {
  std::vector<SampleRow> samples;  ///< in the first tier's steps
  std::map<LeaseKey, LeaseChange> leases;
  std::map<HourKey, Counted> hours;              ///< to be added
  std::map<JobHourKey, Counted> job_hours;       ///< to be added; they are in `hours` as well
  std::map<std::int64_t, std::int64_t> watched;  ///< spans in which somebody looked: from, to
  std::map<std::string, DeviceName> devices;     ///< that are new or called otherwise, by UUID

  bool empty() const { return samples.empty() && leases.empty() && watched.empty(); }
};

/// What is known from before, of leases whose end was not seen.
struct Known {
  std::map<LeaseKey, std::string> open;  ///< and whose they are
  std::int64_t watched_until_s = 0;
};

/// Makes of what is seen, look after look, what is to be written. Pure. Hours are counted by the boot clock
/// and put where the wall clock says: setting that makes none and takes none away.
class Recorder {
 public:
  explicit Recorder(Known known) : known_(std::move(known)) {}

  void see(const Observation& observation);

  /// Grows until it is written, up to a bound: then the oldest samples go, and `lost` counts them.
  const Batch& pending() const { return pending_; }
  void written() { pending_ = {}; }
  /// For a file that knows nothing yet.
  void name_all_devices() { pending_.devices = names_; }
  std::uint64_t lost() const { return lost_; }

 private:
  struct Interval {
    bool first = false;
    bool watched = false;  ///< somebody has looked at its beginning, and would have between
    double seconds = 0;
  };
  Interval interval_until(const Moment& at, std::int64_t every_s) const;
  void sample(const Observation& observation);
  void count(const Observation& observation, const Interval& interval);
  double seconds_of(const LeaseKey& key, const Moment& at, const Interval& interval) const;
  void add_hours(const LeaseSeen& lease, const std::string& uuid, std::int64_t until_s, double seconds,
                 const Counted& a_second);
  void end_missing(const std::map<LeaseKey, std::string>& live, const Interval& interval,
                   std::int64_t wall_s);
  void watch(const Interval& interval, std::int64_t wall_s);
  void keep_within_bounds();

  Known known_;
  std::optional<Moment> last_;
  std::map<LeaseKey, std::string> live_;
  std::optional<Span> span_;
  std::int64_t step_s_ = 0;
  std::map<std::string, SampleMerger> step_;
  std::map<std::string, DeviceName> names_;
  Batch pending_;
  std::uint64_t lost_ = 0;
};

/// What a batch may hold while it cannot be written: an hour of 50 devices.
inline constexpr std::size_t kMostPendingRows = 20'000;

}  // namespace berth::history
