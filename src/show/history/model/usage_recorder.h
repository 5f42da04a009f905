#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/history/model/lease_energy.h"
#include "berth/history/model/observation.h"
#include "berth/history/model/sample.h"
#include "berth/history/model/thinning.h"
#include "berth/usage/past_leases.h"

namespace berth::history {

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
