#include "berth/supervise/lease_options.h"

#include <unistd.h>

#include <chrono>
#include <variant>

#include "berth/base/delay.h"
#include "berth/command/environment.h"
#include "berth/lease/answers.h"
#include "berth/request/job_mask.h"
#include "berth/supervise/until_used.h"
#include "berth/supervise/wait_report.h"

namespace berth::supervise {
Result<std::optional<std::int64_t>> wait_that_is_said(const LeaseOptions& options,
                                                      std::optional<std::int64_t> otherwise) {
  if (options.in_background) return std::nullopt;
  if (options.no_wait) return 0;
  if (options.wait_s) return options.wait_s;
  const std::string_view set = command::variable("BERTH_WAIT");
  if (set.empty()) return otherwise;
  if (set == "forever") return std::nullopt;
  const auto seconds = delay_from_text(set);
  if (!seconds) return std::unexpected(context(seconds.error(), "BERTH_WAIT (a time, 0 or forever)"));
  return *seconds;
}

command::Option time_option(std::string_view name, std::string_view help, Request& request) {
  command::Option option = lease_option("time", request);
  option.name = name;
  option.help = help;
  return option;
}

command::Option lease_option(std::string_view name, Request& request) {
  return command::field_option(*find_request_field(name), kLeaseGroup, request);
}

command::Option note_option(std::string_view group, std::string& note) {
  return command::text_option(group, "note", "TEXT", "shown to others beside the lease", note);
}

void add_lease_options(command::Syntax& syntax, LeaseOptions& options) {
  add_request_options(syntax, options.request);
  syntax.options.push_back(command::flag_option(
      kLeaseGroup, "no-wait", "do not wait: exit with status 75 and the reasons", options.no_wait));
  syntax.options.push_back({kLeaseGroup,
                            0,
                            "wait",
                            "TIME",
                            "wait at most this long (30m), then exit with status 124",
                            {},
                            [&options](std::string_view value) -> Result<void> {
                              BERTH_LET(const auto seconds, delay_from_text(value));
                              options.wait_s = seconds;
                              return {};
                            }});
  add_fields(syntax, RequestPart::lease, kLeaseGroup, options.request.request);
  syntax.options.push_back(note_option(kLeaseGroup, options.note));
}

Result<void> settle(LeaseOptions& options) {
  if (options.no_wait && options.wait_s)
    return fail(ErrorCode::usage, "--wait and --no-wait exclude each other");
  return settle(options.request);
}

Result<leasing::HeldLease> take_lease(const leasing::Session& session, const LeaseOptions& options,
                                      const leasing::TicketWords& words) {
  BERTH_LET(const auto wait_s, wait_that_is_said(options, session.policy().default_wait_s));
  const leasing::Domain& domain = session.domain();
  // Inside a lease the mask is the lease's.
  WaitReport report(words.request,
                    options.request.mask == MaskUse::inherit && !domain.masks.empty() && !domain.within);
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
  auto answer = session.acquire(options.request.request, words, patience, on_wait);
  report.end();
  if (!answer) return std::unexpected(answer.error());
  if (const auto* refusal = std::get_if<leasing::Refusal>(&*answer))
    return std::unexpected(leasing::in_words(*refusal, command::Environment::style_of(STDERR_FILENO)));
  auto lease = std::get<leasing::HeldLease>(std::move(*answer));
  keep_locks_until_used(lease);
  return lease;
}

JobMask lease_environment(const leasing::Domain& domain, const leasing::HeldLease& lease,
                          const command::RequestOptions& asked) {
  const Ticket& ticket = lease.ticket();
  JobMask mask = job_mask(ticket.devices, lease.world().facts.snapshot, asked.uuids);
  bound_job(mask, ticket.devices.size(), asked.request);
  mask.variables.emplace_back("BERTH_LEASE", domain.path_of(ticket.id));
  return mask;
}

}  // namespace berth::supervise
