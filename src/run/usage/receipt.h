#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/job/job.h"
#include "berth/job/task_standing.h"
#include "berth/usage/run_samples.h"
#include "berth/verdict/ledger.h"

// What a run of a command had and used, and what a user's earlier runs come to.
namespace berth {

/// A device of a run. Readings that the machine did not tell are absent, never 0.
struct DeviceReceipt {
  std::string label;  ///< "0", as tables show it
  std::string uuid;
  std::string model;
  Reading<std::uint64_t> energy_mj{};  ///< by the counter of the card; of a share or a MIG instance not known
  /// The most memory in use, of a share by its processes.
  Reading<std::uint64_t> peak_bytes{};
  Reading<std::uint64_t> total_bytes{};   ///< memory that it has
  Reading<unsigned> use_percent{};        ///< share of the time in which a kernel ran; not known likewise
  Reading<unsigned> throttled_percent{};  ///< share of the samples in which the clocks were slowed; likewise

  bool operator==(const DeviceReceipt&) const = default;
};

/// One run of a command, from its request to its end.
struct Receipt {
  TicketId lease{};
  std::string job{};              ///< "12.7"; "": it was no job
  std::int64_t ended_s = 0;       ///< since the epoch, by a wall clock that may have been set meanwhile
  std::uint64_t fingerprint = 0;  ///< of its command, as fingerprint_of
  std::uint64_t shape = 0;        ///< as shape_of
  std::string program{};          ///< as told_program
  std::string command{};          ///< its beginning
  std::int64_t waited_ms = 0;     ///< from the request to the grant
  std::int64_t lasted_ms = 0;
  Ending ending = Ending::well;
  std::optional<int> exit_status{};
  std::optional<int> signal{};      ///< the signal that killed it
  std::uint64_t promise_bytes = 0;  ///< of a share: memory that was promised on each device; 0: whole devices
  std::string driver{};             ///< its version
  /// Figures that no counter has are of samples, which came so often. nullopt: there are none.
  Reading<std::uint64_t> sampled_every_ms{};
  Reading<bool> clean{};      ///< as is_clean
  bool is_accounted = false;  ///< peak and use are exact: of the driver's accounting
  std::vector<DeviceReceipt> devices{};
  std::vector<Outsider> outsiders{};  ///< as far as samples saw them

  bool operator==(const Receipt&) const = default;
};

/// On all of its devices together; absent if one of them does not tell.
Reading<std::uint64_t> energy_mj_of(const Receipt& receipt);

/// The highest of its devices; absent if none tells.
Reading<std::uint64_t> peak_bytes_of(const Receipt& receipt);
/// The mean of its devices that tell.
Reading<unsigned> use_percent_of(const Receipt& receipt);
/// The highest of its devices.
Reading<unsigned> throttled_percent_of(const Receipt& receipt);

/// Whether nobody else computed on its devices, and none was slowed, as far as samples can say.
/// Absent: not known, as of a share, of which no device tells, or where samples are missing.
Reading<bool> is_clean(const Receipt& receipt, const RunSamples& samples);

/// What a job keeps of it.
RunFigures figures_of(const Receipt& receipt);

/// A line of a user's record of runs, with its end of line:
///
///     berth-receipt 1<TAB>lease=0000025b3c1d0e42<TAB>…<TAB>end
///
/// It is a record as all our data (base/record.h), with tabs in the place of ends of line, so that
/// one write adds it and what is torn spoils no other line. No value has a tab, and the lease comes
/// first.
std::string encode_receipt(const Receipt& receipt);

/// Those that can be read, in their order. Lines that were cut off, are of another version or are
/// no such line are skipped; keys of a newer writer are ignored.
std::vector<Receipt> decode_receipts(std::string_view text);

/// The last whole lines of a text that take at most this many bytes.
std::string_view last_lines(std::string_view text, std::size_t most_bytes);

/// The text without the lines that are receipts of this program.
std::string without_program(std::string_view text, std::string_view program);

/// The receipts of several machines as one list, the oldest first. Those of one machine stay in
/// their order, whatever its clock said: it may have been set back. A run that a clock put after
/// `now_s` counts as old as the one before it.
std::vector<Receipt> merged(std::vector<std::vector<Receipt>> of_machines, std::int64_t now_s);

/// For how long earlier runs had their devices, in seconds, the oldest first: what `expectation_of`
/// takes. They are the runs that say most of how long `command` may last: those of the same shape;
/// if there are fewer than three, those of the same program; then all of the user's. Where none has
/// three, the nearest that has any. Runs that were over within a minute (kShortestRun) do not
/// count. `receipts`: of one user, the oldest first.
std::vector<Moment> earlier_runs(std::span<const Receipt> receipts, std::uint32_t uid,
                                 std::string_view command);

/// What all runs of one program came to.
struct ProgramRuns {
  std::string program;
  std::string command{};  ///< the beginning of that of the newest run
  std::size_t runs = 0;
  std::size_t badly = 0;                ///< so many of them ended badly
  std::int64_t median_ms = 0;           ///< of how long they lasted
  std::int64_t last_s = 0;              ///< when the newest of them ended
  Reading<std::uint64_t> energy_mj{};   ///< of all runs that tell it
  Reading<std::uint64_t> peak_bytes{};  ///< the highest of all runs

  bool operator==(const ProgramRuns&) const = default;
};

/// One for each fingerprint, the one that ran last first.
std::vector<ProgramRuns> runs_by_program(std::span<const Receipt> receipts);

// What `--memory auto` comes to: the memory that earlier runs of a command had in use, and a
// margin.

/// So many runs have to be known.
inline constexpr std::size_t kRunsForMemory = 5;

struct MemoryByRuns {
  std::optional<std::uint64_t> bytes{};  ///< to promise on each device; nullopt: whole devices
  std::size_t runs = 0;                  ///< so many earlier runs tell their memory

  bool operator==(const MemoryByRuns&) const = default;
};

/// By the last twenty runs of the same shape that ended well and tell the peak of their memory; if
/// there are fewer than five, by those of the same program. What 95 % of them did not exceed, and a
/// margin: a tenth of it, or half of the difference between the least and the most, whichever is
/// more; in whole 256 MiB. Whole devices where fewer than five runs are known, or where it comes to
/// more than nine tenths of the smallest device that they ran on. `receipts`: of one user, the
/// oldest first.
MemoryByRuns memory_by_runs(std::span<const Receipt> receipts, std::uint32_t uid, std::string_view command);

/// A sentence for the user: "--memory auto: 12 GiB on each GPU, by the last 7 runs".
std::string in_words(const MemoryByRuns& memory);

}  // namespace berth
