#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/history/database.h"
#include "berth/history/model/sample.h"
#include "berth/history/model/usage_recorder.h"
#include "berth/usage/usage.h"

namespace berth::history {

/// The history of a machine in one file (docs/serve.md). One process at a time has the file.
class HistoryFile {
 public:
  /// The file never grows beyond this. While it is written, a log of a few MiB is beside it.
  static constexpr std::int64_t kMostBytes = 64LL << 20U;

  /// Opens the file; makes it if it is missing (claim_file).
  static Done<HistoryFile> open(const std::string& path, std::int64_t most_bytes = kMostBytes);
  /// The leases without an end, and until when an agent looked; at `now_s` nobody has looked yet.
  Done<Known> known(std::int64_t now_s);
  /// Writes all of the batch or nothing.
  Done<void> write(const Batch& batch);
  /// Merges and drops old data, a part at a time, and the names of which nothing is left. Also
  /// makes sure that a power cut cannot undo what was written. To be called every kThinningEvery.
  Done<void> thin(std::int64_t now_s);
  /// Drops some of the oldest data if the file is near its bound: of the users' data, that of the
  /// user who has the most of it. To be called after each write.
  Done<void> make_room(std::int64_t now_s);
  /// False: another file has this name now, or none.
  bool is_still_there() const;

  /// nullopt: nothing is known of the device.
  Done<std::optional<DeviceHistory>> device_history(const DeviceQuestion& question, std::int64_t now_s);
  Done<std::vector<std::string>> device_uuids();
  /// The usage of the hours that begin in this span.
  Done<Usage> usage(UsageBy by, Span span);
  /// All leases that lived at some moment of this time. If there are more than
  /// kMostRecordedLeases, of a shorter time, up to the same moment.
  Done<RecordedLeases> recorded_leases(LeasesQuestion question, std::int64_t now_s);

 private:
  HistoryFile(Database database, std::string path, std::int64_t most_bytes);
  Done<void> prepare();
  template <class Steps>
  Done<void> as_one(const Steps& steps);
  Done<std::int64_t> device_id(const std::string& uuid);
  Done<std::int64_t> user_id(const std::string& user);
  Done<std::int64_t> job_id(const std::string& name);
  /// The id of the row with this name. `insertion` gives it, and makes the row if it is missing.
  Done<std::int64_t> id_of_name(std::string_view insertion, const std::string& name,
                                std::map<std::string, std::int64_t>& known);
  Done<void> write_rows(const Batch& batch);
  Done<void> write_lease(const LeaseKey& key, const LeaseChange& change);
  Done<void> write_hour(const HourKey& key, const Counted& counted);
  Done<void> write_job_hour(const JobHourKey& key, const Counted& counted);
  Done<void> write_sample(std::int64_t step_s, const SampleRow& row);
  Done<void> thin_samples(std::size_t tier, Span span);
  Done<void> drop_accounts(std::int64_t before_s);
  Done<Oldest> oldest();
  Done<Room> room();
  Done<void> forget(const Kind& kind, const Room& room);
  Done<void> forget_samples(std::size_t tier, std::int64_t rows);
  Done<void> forget_account(Account account, std::int64_t rows);
  Done<void> drop_unused_names();
  Done<std::vector<SampleRow>> samples(std::size_t tier, Span span, std::optional<std::int64_t> device);
  Done<std::vector<std::string>> device_uuids(Span span);
  /// From when on no more than kMostRecordedLeases lived in the span.
  Done<std::int64_t> readable_from(Span span);
  /// Loads and memory of its devices.
  Done<void> add_readings(RecordedLeases& recorded, const Grid& grid);
  Done<std::vector<PastLease>> leases_of(std::int64_t device, Span span);
  Done<std::int64_t> unwatched_s(Span span);

  Database database_;
  std::string path_;
  std::int64_t most_bytes_;
  std::uint64_t inode_ = 0;
  std::map<std::string, std::int64_t> devices_;  ///< ids that were asked for already
  std::map<std::string, std::int64_t> users_;
  std::map<std::string, std::int64_t> jobs_;
};

}  // namespace berth::history
