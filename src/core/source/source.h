#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/device/device.h"

namespace berth::source {

/// The source to ask: a row of the table of sources, or for each vendor the first
/// source that is found.
class SourceKind {
 public:
  static const SourceKind kAutomatic;

  constexpr SourceKind() = default;
  /// `row`: the name of one.
  explicit constexpr SourceKind(std::string_view row) : name_(row) {}

  bool is_automatic() const { return name_ == kAutomatic.name_; }
  std::string_view name() const { return name_; }
  bool operator==(const SourceKind&) const = default;

 private:
  std::string_view name_ = "auto";
};
inline constexpr SourceKind SourceKind::kAutomatic{};

/// Text form as on the command line: the name of a row, or "auto".
std::optional<SourceKind> source_kind_from_text(std::string_view text);
std::string_view to_text(SourceKind kind);
bool read_value(std::string_view text, SourceKind& kind);  ///< false: it is none
/// All text forms.
std::vector<std::string_view> source_names();

/// Where snapshots come from.
class Source {
 public:
  virtual ~Source() = default;

  /// The machine now, with the given readings. A device that fails is a row of the snapshot, not an
  /// error. Never hangs with the driver: past the deadline, the answer says which device does not
  /// respond. Error: `no_driver` if there is no driver or it does not work, with the remedy;
  /// `failure` otherwise.
  virtual Result<Snapshot> read(ReadingSet readings) = 0;
  /// The same. Calls `meanwhile` once, before the answer is there, where that can be: what takes
  /// its own time then takes none of ours.
  virtual Result<Snapshot> read_beside(ReadingSet readings, const std::function<void()>& meanwhile) {
    meanwhile();
    return read(readings);
  }
  /// The same, where only these devices are of interest: a source may leave out the readings of the
  /// others.
  virtual Result<Snapshot> read_of(const std::vector<std::string>& uuids, ReadingSet readings) {
    static_cast<void>(uuids);
    return read(readings);
  }
};

/// What a reader is about to do, and where it may hang.
struct Stage {
  enum class Kind {
    driver,  ///< finding the devices
    device,  ///< `index` of `count`
    topology,
    users,  ///< names of users, from the system's name service
    done,   ///< nothing more
  };
  Kind kind = Kind::driver;
  unsigned index = 0;
  unsigned count = 0;
  std::string vendor{};  ///< of the devices; "": kUntoldVendor

  bool operator==(const Stage&) const = default;
};
constexpr auto words_of(Stage::Kind) {
  return std::to_array<std::string_view>({"driver", "device", "topology", "users", "done"});
}

struct ReadRequest {
  ReadingSet readings;
  SourceKind kind = SourceKind::kAutomatic;
  /// The directory in which the reader may keep what it has learnt; "": none.
  std::string state_directory;
  /// The version of the Berth that asks; a probe of another version refuses. "": any.
  std::string version{};
  /// UUIDs of GPUs; of others nothing but the identity need be read. Empty: of all, all. A probe of
  /// another version may not know it, and reads all.
  std::vector<std::string> only{};

  bool operator==(const ReadRequest&) const = default;
};

/// Receives a snapshot while it is being read.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Called once, and first: what belongs to the machine as a whole.
  virtual void head(const Snapshot& head) = 0;
  virtual void begin(const Stage& stage) = 0;
  virtual void device(const Device& device) = 0;
  /// The name of a user, for this user's processes, which lack it so far.
  virtual void user(std::uint32_t uid, std::string_view name) = 0;
  virtual void topology(const Topology& topology) = 0;
  virtual void note(std::string_view note) = 0;
};

/// Reads the machine in this very process, and may hang with the driver. Only the probe uses it.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Whether its driver is here. Loads the library to find out; if the driver was missing, a later
  /// call looks again.
  virtual bool found() = 0;
  /// A device that fails is a row, not an error. Error: `no_driver`, before anything was put into
  /// the sink.
  virtual Result<void> read(const ReadRequest& request, Sink& sink) = 0;
};

/// One way to ask for the devices of one vendor.
struct SourceRow {
  std::string_view name;    ///< on the command line, in records and in JSON
  std::string_view vendor;  ///< Vendor::name
  /// Makes its reader. `listener`: if nobody reads from it any more, processes that the reader has
  /// started are ended.
  std::unique_ptr<Reader> (*make)(int listener);
};

/// All sources; the vendors are in the order in which their devices are listed. For each vendor,
/// the first row whose reader is found is asked.
std::span<const SourceRow> source_table();

/// Makes one snapshot of the snapshots of several readers, one after another. The devices of the
/// second reader are numbered on from those of the first, and no reader knows of another. Passes
/// everything on as it comes.
class SnapshotJoiner : public Sink {
 public:
  explicit SnapshotJoiner(Sink& sink) : sink_(sink) {}

  void head(const Snapshot& head) override;
  void begin(const Stage& stage) override;
  void device(const Device& device) override;
  void user(std::uint32_t uid, std::string_view name) override { sink_.user(uid, name); }
  void topology(const Topology& topology) override;
  void note(std::string_view note) override;

  /// To be called when a reader has ended; the next one begins, if there is one.
  void next();
  /// To be called when all readers have ended. False: no reader gave a head, and nothing was passed
  /// on.
  bool finish();

 private:
  void send_head();

  Sink& sink_;
  std::optional<Snapshot> head_;  ///< kept until a device or a note comes
  bool sent_ = false;
  unsigned before_ = 0;  ///< how many GPUs the readers before had
  unsigned count_ = 0;   ///< how many GPUs there are so far
  std::optional<Topology> topology_;
};

/// The files in /dev that a job opens to use the devices of some vendors.
struct DeviceFiles {
  std::size_t seen = 0;
  std::vector<std::string> shut{};  ///< those that this process may not read and write
};
DeviceFiles device_files(std::span<const Vendor> vendors);

struct ProbeOptions {
  std::string program = "/proc/self/exe";  ///< that runs as the probe
  std::vector<std::string> arguments = {"__probe"};
  /// The first probe is a fork of this process and no new program. REQUIRES then: this process has
  /// one thread, and has done nothing yet but read its command line.
  bool is_forked = false;
  SourceKind kind = SourceKind::kAutomatic;
  /// If nothing comes for this long, the driver counts as hanging.
  std::chrono::milliseconds progress_deadline = std::chrono::seconds(10);
  /// The wait for topology is shorter, because devices can also be chosen without it.
  std::chrono::milliseconds topology_deadline = std::chrono::seconds(5);
  /// The directory that remembers a hanging probe and keeps the topology. All users may write to it
  /// (the lease directory). "", or a missing directory: nothing is remembered.
  std::string state_directory;
  /// The version of this Berth, because the probe may be of another one; "" if it cannot be.
  std::string version;
  /// More than one read will come, so the last answer is kept in case there is no new one.
  bool keep = false;
};

/// Reads the machine through a probe process, so that this process does not hang or crash with the
/// driver.
///
/// A read past its deadline gives what is known: the devices read so far, and the others as
/// `unresponsive`, with their last readings and `stale_reason`, if there are any. In an answer that
/// is old throughout, no device is ok. A probe that hangs is left alone (it cannot be killed).
/// While it hangs, no process of this user starts a second one. Another probe then asks for devices
/// of another vendor.
class ProbeSource : public Source {
 public:
  /// Starts the probe and does not wait for it, so call it early. Error: `failure` if it cannot be
  /// started.
  static Result<ProbeSource> start(ProbeOptions options);

  ProbeSource(ProbeSource&&) noexcept;
  ProbeSource& operator=(ProbeSource&&) noexcept;
  ~ProbeSource() override;

  Result<Snapshot> read(ReadingSet readings) override;
  Result<Snapshot> read_beside(ReadingSet readings, const std::function<void()>& meanwhile) override;
  Result<Snapshot> read_of(const std::vector<std::string>& uuids, ReadingSet readings) override;
  /// Ends the probe and waits this long for its end, so that it leaves no zombie. A probe that
  /// hangs is left alone.
  void end(std::chrono::milliseconds patience);
  /// Sets what only the command line says, which may be parsed after the start.
  void set_kind(SourceKind kind);

 private:
  class Body;
  explicit ProbeSource(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// The probe's main: reads requests from `in` and writes their answers to `out`, until `in` ends.
/// It is the only process that loads the driver, so it is the only one that the driver can hang or
/// kill.
///
/// Where `in` is a socket, a byte goes back on it when there is something to take from `out`:
/// whoever asked sleeps there, and is not woken for every step.
///
/// `expected`: the source that will be asked for; it is loaded while the first request is still to
/// come. `version`: of this program.
///
/// Ends the process at once: a driver's own clearing up can hang as any call of it, and the kernel
/// does it anyway.
///
/// REQUIRES: the process is the probe's own. It gets the short name `kProbeName`, which it keeps
/// when it has ended.
inline constexpr const char* kProbeName = "berth __probe";
[[noreturn]] void run_probe(int in, int out, SourceKind expected, std::string_view version);

/// For a process that another Berth has asked. Error: `failure` if that one (`asking`; "": it does
/// not say) is of another version than this program; says what to do.
Result<void> check_version(std::string_view asking, std::string_view program);

/// The answer if the driver has hung since `since` ("14:02") in `stage`. It has the devices of
/// `partial` as they are. The device at which the driver hangs and those after it are unresponsive,
/// with their readings from `last`, if there is one; the snapshot is then marked stale. If the hang
/// cost no device, but only something about the devices, a note says so. Pure.
Snapshot finish_interrupted(Snapshot partial, const Stage& stage, const std::optional<Snapshot>& last,
                            std::string_view since);

/// `known`, followed by the devices of another maker, which its own source has just read. Pure.
Snapshot beside(Snapshot known, Snapshot other);

}  // namespace berth::source
