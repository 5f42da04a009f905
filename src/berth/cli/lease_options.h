#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/cli/request_options.h"
#include "berth/core/job_mask.h"
#include "berth/lease/session.h"

namespace berth::cli {

/// Heading of the options about the lease.
inline constexpr std::string_view kLeaseGroup = "The lease and the command";

/// What the flags of a command that takes a lease say.
struct LeaseOptions {
  RequestOptions request;
  bool no_wait = false;
  std::optional<std::int64_t> wait_s;  ///< nullopt: neither flag says
  std::string note;
  std::string asked_at;       ///< as of a ticket
  bool stands_again = false;  ///< it had a lease, and gave way
  bool unwatched = false;     ///< nobody reads how the wait goes, and it has no limit
  leasing::OnWait on_wait{};  ///< who is told how the wait goes, in place of the error stream; null: nobody
};

/// Adds the request flags and --no-wait, --wait, --time and --note. They write into `options`, which must
/// outlive the syntax.
void add_lease_options(Syntax& syntax, LeaseOptions& options);

/// An option that says how long the lease lasts at most.
Option time_option(std::string_view name, std::string_view help, Request& request);

/// --yield.
Option yield_option(Request& request);

/// Settles what depends on several flags, after they are parsed. Error: `usage` for contradictions.
Result<void> settle(LeaseOptions& options);

/// How long the command line, else BERTH_WAIT, says to wait; else `otherwise`. nullopt: for ever.
Result<std::optional<std::int64_t>> wait_that_is_said(const LeaseOptions& options,
                                                      std::optional<std::int64_t> otherwise);

/// Takes the lease, in its turn, and tells on the error stream how the wait goes: as long as the flags say,
/// else BERTH_WAIT, else the site file, else for ever. Error: as Session::acquire; `impossible`, `not_now`,
/// or `timed_out` when it has waited, with the reason of every device.
Result<leasing::HeldLease> take_lease(const leasing::Session& session, const LeaseOptions& options,
                                      const leasing::TicketWords& words);

/// What a job in this lease finds in its environment.
JobMask lease_environment(const leasing::Place& place, const leasing::HeldLease& lease, bool uuids);

}  // namespace berth::cli
