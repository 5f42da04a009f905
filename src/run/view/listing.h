#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/queue/standing.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"
#include "berth/view/text.h"

namespace berth::view {

/// The contents of a listing: the devices, who has them, and the verdicts on a request for one
/// whole device.
struct Listing {
  const Facts& facts;
  const Ledger& ledger;
  const std::vector<Verdict>& verdicts;
  const std::set<std::uint32_t>&
      assumed;  ///< processes that are attributed to a lease only because of their user
  const IdleTimes& idle;
  /// For leases whose command has ended: the processes that still hold them.
  std::map<TicketId, std::vector<Holder>> left_behind{};
  std::optional<TicketId> own{};  ///< the lease that the asking process is inside of
  Ledger inside{};                ///< the leases inside that one
  /// About when a request for one whole device that is made now starts. nullopt: now, or nobody
  /// knows.
  std::optional<std::int64_t> next_start_s{};
  /// The requests of the user who asks that wait.
  std::vector<Standing> own_waiting{};
  /// The leases whose processes are stopped (Ctrl-Z, SIGSTOP).
  std::set<TicketId> stopped{};
};

/// The readings that the table shows in addition to those for judging. The JSON form shows
/// readings_for_listing().
ReadingSet readings_for_table();

/// How much a listing tells.
enum class Detail {
  brief,  ///< a row for each device: who has it, until when, and for what
  whole,  ///< also temperature, power and processes; a row for each lease and for each process
};

/// The tables of a listing, and a row of each.
std::vector<Column> device_columns();
Row device_row(const Listing& listing, const Device& device, const Style& style);
/// `some_end`: has_some_end() of the ledger.
std::vector<Column> lease_columns(bool some_end);
Row lease_row(const Listing& listing, const ShortNames& names, const Ticket& lease, bool some_end,
              const Style& style);
bool has_some_end(const Ledger& ledger);
std::vector<Column> process_columns();
Row process_row(const Listing& listing, const Device& device, const Process& process, const Style& style);

/// "and 4000 more leases of mallory", a line for each user of whom some are not listed.
std::string unlisted_lines(const std::vector<Unlisted>& unlisted, std::size_t Unlisted::* count,
                           std::string_view noun, const Style& style);

/// "8 GPUs, 3 free, 2 waiting, driver 550.163.01, CUDA 12.4"; in brief without the versions, but "8
/// GPUs, none free; a new request starts about 21:43".
std::string summary_of(const Listing& listing, Detail detail, const Style& style);

/// A line of names, and a line of values for each device, as spreadsheets read them. A value that
/// the machine does not tell is empty.
std::string listing_csv(const Listing& listing, const Style& style);

/// At most style.width columns.
std::string listing_table(const Listing& listing, Detail detail, const Style& style);

}  // namespace berth::view
