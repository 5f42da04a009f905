#include "berth/supervise/take_lease.h"

#include <unistd.h>

#include <chrono>
#include <utility>
#include <variant>

#include "berth/answers/answers.h"
#include "berth/command/environment.h"
#include "berth/receipts/earlier_runs.h"
#include "berth/supervise/until_used.h"
#include "berth/supervise/wait_report.h"

namespace berth::supervise {

Result<leasing::HeldLease> take_lease(const leasing::Session& session, const LeaseOptions& options,
                                      leasing::TicketWords words) {
  BERTH_LET(const auto wait_s, wait_that_is_said(options, session.policy().default_wait_s));
  const leasing::Domain& domain = session.domain();
  // Inside a lease the mask is the lease's.
  WaitReport report(words.request,
                    options.request.mask == MaskUse::inherit && !domain.masks.empty() && !domain.within,
                    wait_s != 0);
  Patience patience;
  patience.wait = wait_s != 0;
  if (wait_s) patience.limit = std::chrono::seconds(*wait_s);
  patience.is_requeued = options.is_requeued;
  patience.was_accepted = options.was_accepted;
  leasing::OnWait on_wait = options.on_wait;
  if (!options.in_background && !on_wait.call) {
    on_wait.call = [&report](const Standing& standing, const Snapshot& snapshot) {
      report.show(standing, snapshot);
    };
    on_wait.at_each_tick = report.is_live();
  }
  words.earlier_runs = leasing::earlier_runs_of(words.command);
  auto answer = session.acquire(options.request.request, words, patience, on_wait);
  report.end();
  if (!answer) return std::unexpected(answer.error());
  if (const auto* refusal = std::get_if<leasing::Refusal>(&*answer))
    return std::unexpected(leasing::in_words(*refusal, command::Environment::style_of(STDERR_FILENO)));
  auto lease = std::get<leasing::HeldLease>(std::move(*answer));
  keep_locks_until_used(lease);
  return lease;
}

}  // namespace berth::supervise
