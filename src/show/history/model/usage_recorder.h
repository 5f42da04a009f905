#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/history/model/sample.h"
#include "berth/usage/usage.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"

namespace berth::history {

/// When a look was, by two clocks. Somebody may set the wall clock; the boot clock goes on while
/// the machine sleeps.
struct TimeOfLook {
  std::int64_t wall_s = 0;
  std::chrono::nanoseconds boot{};
};

struct DeviceSeen {
  std::string uuid;
  std::string label;  ///< "3", "3:1"
  std::string name;
  Sample sample;
  Reading<std::uint64_t> energy_mj{};  ///< by its counter; absent also if this look did not ask for it
  Reading<bool> throttled{};           ///< whether heat or power slows its clocks. Absent: not known
};

struct LeasedSeen {
  std::string uuid;
  double share = 1;    ///< share of the device's time; if several leases share the device, it counts once
  Reading<bool> used;  ///< whether a process of the lease computes on it. Absent: not known
  /// Whether another process computes on it, even if the site ignores that one. Absent: not known
  Reading<bool> beside{};
};

struct LeaseSeen {
  TicketId id;
  std::int64_t since_s = 0;  ///< when it was granted, seconds since the epoch
  std::string user;
  std::vector<LeasedSeen> devices;
  std::optional<std::string> job{};  ///< the name of its job; "": a job without a name
  std::optional<RecordedWish> wish{};
};

/// The part of a look that the history needs.
struct Observation {
  TimeOfLook at;
  std::int64_t every_s = 1;  ///< the time until the next look
  std::vector<DeviceSeen> devices;
  std::vector<LeaseSeen> leases;
};

/// Pure. If the readings are stale, it has only the leases.
Observation observe(const Facts& facts, const Ledger& ledger, TimeOfLook at, std::int64_t every_s);

/// Adds up, look after look, what a lease used of a device that it has as a whole. It must see the
/// lease from its first look on.
class LeaseTally {
 public:
  /// One look. `seconds`: since the look before, or since the grant. `is_missed`: between the two
  /// there should have been more looks.
  void see(const DeviceSeen& device, const LeasedSeen& lease, double seconds, bool is_missed);

  /// What the looks come to. The energy is the difference of the card's counter between the first
  /// and the last look that told it; before and after, the power of the looks counts. Absent if
  /// the counter was not told twice, or began anew.
  RecordedFigures figures() const;

 private:
  void see_energy(const DeviceSeen& device, double seconds);

  Reading<std::uint64_t> counter_mj_;
  unsigned counters_ = 0;
  double energy_mj_ = 0;
  double since_counter_mj_ = 0;  ///< by the power of the looks
  bool tells_energy_ = true;
  bool is_clean_ = true;
  bool tells_clean_ = true;
};

/// A lease on one of its devices. After a reboot the same id may come again, so the id alone is not
/// enough.
struct LeaseKey {
  std::int64_t begun_s = 0;
  TicketId id;
  std::string uuid;
  auto operator<=>(const LeaseKey&) const = default;
};

struct Counted {
  double leased_s = 0;
  double used_s = 0;  ///< of these, while a process of the lease computed on the device

  void add(const Counted& more) {
    leased_s += more.leased_s;
    used_s += more.used_s;
  }
  bool operator==(const Counted&) const = default;
};

struct LeaseChange {
  std::string user;
  std::optional<std::string> job;       ///< as LeaseSeen::job; nullopt also if it was told before
  std::optional<std::int64_t> ended_s;  ///< nullopt: it lives
  bool end_seen = true;                 ///< false: it ended at some time after `ended_s`, when nobody looked
  Counted more;                         ///< to be added to what is written
  std::optional<RecordedWish> wish{};   ///< nullopt: nothing new
  /// Of a lease whose end was seen. nullopt: nothing new
  std::optional<RecordedFigures> figures{};

  bool operator==(const LeaseChange&) const = default;
};

struct HourKey {
  std::int64_t hour_s = 0;  ///< when it begins
  std::string user;
  std::string uuid;
  auto operator<=>(const HourKey&) const = default;
};

/// All jobs of a user that have one name, on all devices.
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

/// What is to be written in one step.
struct Batch {
  std::vector<SampleRow> samples;  ///< in the first tier's steps
  std::map<LeaseKey, LeaseChange> leases;
  std::map<HourKey, Counted> hours;              ///< to be added
  std::map<JobHourKey, Counted> job_hours;       ///< to be added; they are in `hours` as well
  std::map<std::int64_t, std::int64_t> watched;  ///< spans in which an agent looked: from, to
  std::map<std::string, DeviceName> devices;     ///< devices that are new or have a new name, by UUID

  bool empty() const { return samples.empty() && leases.empty() && watched.empty(); }
};

/// What the file knows of leases whose end was not seen.
struct Known {
  std::map<LeaseKey, std::string> open;  ///< with the user of each
  std::int64_t watched_until_s = 0;
};

/// Turns the looks, one after another, into what is to be written. Pure. It counts hours by the
/// boot clock, and files them under the time of the wall clock. So setting the wall clock adds no
/// hours and removes none.
class Recorder {
 public:
  explicit Recorder(Known known) : known_(std::move(known)) {}

  void see(const Observation& observation);

  /// Grows until it is written, up to a bound. At the bound it drops the oldest samples, and of the
  /// rows of users some of the user who has the most. `lost` counts them.
  const Batch& pending() const { return pending_; }
  void written() { pending_ = {}; }
  /// For a file that knows nothing yet.
  void name_all_devices() { pending_.devices = names_; }
  std::uint64_t lost() const { return lost_; }

 private:
  struct Interval {
    bool first = false;
    bool watched = false;  ///< an agent looked at its beginning, and would have looked in between
    double seconds = 0;
  };
  Interval interval_until(const TimeOfLook& at) const;
  void sample(const Observation& observation);
  void count(const Observation& observation, const Interval& interval);
  double seconds_of(const LeaseKey& key, const TimeOfLook& at, const Interval& interval) const;
  /// Of a lease that was granted before the first look nobody knows what it had used until then.
  void tally(const LeaseKey& key, const LeasedSeen& lease, const Observation& observation,
             const Interval& interval, double seconds);
  void add_hours(const LeaseSeen& lease, const std::string& uuid, std::int64_t until_s, double seconds,
                 const Counted& a_second);
  void end_missing(const std::map<LeaseKey, std::string>& live, const Interval& interval,
                   std::int64_t wall_s);
  void watch(const Interval& interval, std::int64_t wall_s);
  void keep_within_bounds();
  const std::string& counted_name(std::int64_t hour_s, const std::string& user, const std::string& job);

  Known known_;
  std::optional<TimeOfLook> last_;
  std::int64_t every_s_ = 0;  ///< as the last look said: the time from it to the next look
  std::map<LeaseKey, std::string> live_;
  std::map<LeaseKey, LeaseTally> tallies_;  ///< of whole devices
  std::optional<Span> span_;
  std::int64_t step_s_ = 0;
  std::map<std::string, SampleMerger> step_;
  std::map<std::string, DeviceName> names_;
  std::int64_t named_hour_s_ = 0;
  std::map<std::string, std::set<std::string>> job_names_;  ///< by user, in this hour
  Batch pending_;
  std::uint64_t lost_ = 0;
};

/// How much a batch may hold while it cannot be written: an hour of 50 devices.
inline constexpr std::size_t kMostPendingRows = 20'000;

/// How many names the jobs of a user may have in one hour. All further names count as kOtherJobs.
inline constexpr std::size_t kMostJobNames = 256;
inline constexpr std::string_view kOtherJobs = "(other jobs)";

}  // namespace berth::history
