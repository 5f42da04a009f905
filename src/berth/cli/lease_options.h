#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/cli/request_options.h"
#include "berth/lease/acquire.h"
#include "berth/lease/place.h"

namespace berth::cli {

/// Heading of the options about the lease.
inline constexpr std::string_view kLeaseGroup = "The lease and the command";

/// What the flags of a command that takes a lease say.
struct LeaseOptions {
  RequestOptions request;
  bool no_wait = false;
  std::optional<std::int64_t> wait_s;
  std::string note;
};

/// Adds the request flags and --no-wait, --wait and --note. They write into `options`, which must outlive the
/// syntax.
void add_lease_options(Syntax& syntax, LeaseOptions& options);

/// A lease to be taken, when all that bears on it has been read.
struct LeaseRequest {
  Request request;
  std::string request_words;  ///< the request as people read it
  leasing::LookOptions
      look;            ///< `within` is filled in by take_lease; `mask` is dropped with a dead BERTH_LEASE
  bool uuids = false;  ///< --ids uuid
  std::optional<std::int64_t> wait_s;  ///< --no-wait is 0; nullopt: for ever
  std::string note;
};

/// Settles the flags with BERTH_WAIT and the site file. Error: `usage`; a broken site file.
Result<LeaseRequest> settle(LeaseOptions& options);

/// Takes the lease, in its turn, and tells on the error stream how the wait goes. Error: as acquire_in_turn;
/// `not_now`, or `timed_out` when it has waited, with the reason of every device.
Result<leasing::HeldLease> take_lease(const leasing::SourceAccess& source, leasing::Place& place,
                                      const LeaseRequest& asked, const leasing::TicketWords& words);

/// What a job in this lease finds in its environment.
std::vector<std::pair<std::string, std::string>> lease_environment(const leasing::Place& place,
                                                                   const leasing::HeldLease& lease,
                                                                   bool uuids);

}  // namespace berth::cli
