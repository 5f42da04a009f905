#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/command/field_options.h"
#include "berth/lease/session.h"

namespace berth::supervise {

/// Heading of the options about the lease.
inline constexpr std::string_view kLeaseGroup = "The lease and the command";

/// The options of a command that takes a lease.
struct LeaseOptions {
  command::RequestOptions request;
  bool no_wait = false;
  std::optional<std::int64_t> wait_s;  ///< nullopt: neither option is given
  std::string note;
  std::string origin;          ///< as of a ticket
  bool is_requeued = false;    ///< it had a lease, and gave way for another request
  bool was_accepted = false;   ///< earlier, as possible
  bool in_background = false;  ///< nobody is told how the wait goes, and it has no limit
  leasing::OnWait on_wait{};   ///< is told how the wait goes, in place of the error stream; null: nobody
};

/// Adds the options of a request and of a lease, and --no-wait, --wait and --note. They write into
/// `options`, which must outlive the syntax.
void add_lease_options(command::Syntax& syntax, LeaseOptions& options);

/// --time with another explanation: what its end means depends on the command.
command::Option time_option(std::string_view help, Request& request);

/// The row of this name, for a command that does not have all of its part.
command::Option lease_option(std::string_view name, Request& request);

/// --note.
command::Option note_option(std::string_view group, std::string& note);

/// Settles what depends on several options, after they are parsed. Error: `usage` for
/// contradictions.
Result<void> settle(LeaseOptions& options);

/// How long to wait: as the command line says, else as BERTH_WAIT says, else `otherwise`. nullopt:
/// for ever.
Result<std::optional<std::int64_t>> wait_that_is_said(const LeaseOptions& options,
                                                      std::optional<std::int64_t> otherwise);

}  // namespace berth::supervise
