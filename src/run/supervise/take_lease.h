#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/command/shared_options.h"
#include "berth/device/device.h"
#include "berth/lease/session.h"
#include "berth/queue/standing.h"
#include "berth/request/request.h"

namespace berth::supervise {

/// Heading of the options about the lease.
inline constexpr std::string_view kLeaseGroup = "The lease and the command";

/// The options of a command that takes a lease.
struct LeaseOptions : command::RequestOptions {
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

/// The variables of Berth in the environment of a job in this lease, which was asked for with these
/// options.
JobMask lease_environment(const leasing::Domain& domain, const leasing::HeldLease& lease,
                          const command::RequestOptions& asked);

/// Leaves the locks that the lease has until it is used to processes of their own, one for each:
/// what was leased, and for whom, lives on as it is. A lock that cannot be left ends with this
/// process.
void keep_locks_until_used(const leasing::HeldLease& lease);

/// Whether a live line on the terminal of the error stream disturbs nothing.
bool may_draw();

/// Tells on the error stream how a wait goes: on a terminal, as long as we are in the foreground
/// there, one live line; elsewhere a line at each change.
class WaitReport {
 public:
  /// `obeys_mask`: the request is for devices that an inherited mask shows; the report says so.
  /// `enters_queue`: it says how to leave the queue, and how not to enter it.
  WaitReport(std::string request_words, bool obeys_mask, bool enters_queue);

  void show(const Standing& standing, const Snapshot& snapshot);
  /// Whether what it shows changes with the time.
  bool is_live() const { return terminal_; }
  /// Clears the live line.
  void end();

 private:
  std::string request_words_;
  bool obeys_mask_;
  bool terminal_;
  bool enters_queue_;
  bool shown_ = false;
  std::string last_;  ///< what was told last, without the time
};

/// Takes the lease, in its turn, and tells on the error stream how the wait goes. Waits as long as
/// the options say, else BERTH_WAIT, else the site file, else for ever. Error: as Session::acquire;
/// `impossible`, `not_now`, or, if it has waited, `timed_out`, with the reason for every device.
Result<leasing::HeldLease> take_lease(const leasing::Session& session, const LeaseOptions& options,
                                      leasing::TicketWords words);

}  // namespace berth::supervise
