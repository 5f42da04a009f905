#include "berth/cli/lease_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "berth/cli/choice.h"
#include "berth/cli/question.h"
#include "berth/cli/wait_report.h"
#include "berth/core/units.h"
#include "berth/render/explain.h"

namespace berth::cli {
namespace {

// The command line, else BERTH_WAIT, else the site file, else for ever (nullopt).
Result<std::optional<std::int64_t>> wait_in_force(const LeaseOptions& options, const SitePolicy& policy) {
  if (options.no_wait) return 0;
  if (options.wait_s) return options.wait_s;
  const std::string_view set = variable("BERTH_WAIT");
  if (set.empty()) return policy.default_wait_s;
  if (set == "forever") return std::nullopt;
  const auto seconds = seconds_from_text(set);
  if (!seconds) return std::unexpected(context(seconds.error(), "BERTH_WAIT (a time, 0 or forever)"));
  return *seconds;
}

Error no_lease(const LeaseRequest& asked, leasing::Refused refusal, store::LeaseStore& store) {
  std::vector<std::string> looser;
  // Deciding has not looked at who else waits.
  if (auto books = store.look()) {
    refusal.world.ledger = std::move(books->ledger);
    looser = looser_requests(asked.request, refusal.world);
  }
  Error error = refused(asked.request, refusal.verdicts, refusal.world.facts, std::move(looser));
  if (!refusal.waited || error.code != ErrorCode::not_now) return error;
  return {ErrorCode::timed_out,
          fmt::format("waited {} in vain; {}", duration_for_people(*asked.wait_s), error.message)};
}

}  // namespace

void add_lease_options(Syntax& syntax, LeaseOptions& options) {
  add_request_options(syntax, options.request);
  syntax.options.push_back({kLeaseGroup,
                            0,
                            "no-wait",
                            "",
                            "status 75 at once where there is no such GPU now",
                            {},
                            raise_flag(options.no_wait)});
  syntax.options.push_back({kLeaseGroup,
                            0,
                            "wait",
                            "TIME",
                            "wait at most so long (30m), then status 124",
                            {},
                            [&options](std::string_view value) -> Result<void> {
                              BERTH_LET(const auto seconds, seconds_from_text(value));
                              options.wait_s = seconds;
                              return {};
                            }});
  syntax.options.push_back(
      {kLeaseGroup, 0, "note", "TEXT", "shown to others beside the lease", {}, store_text(options.note)});
}

Result<LeaseRequest> settle(LeaseOptions& options) {
  if (options.no_wait && options.wait_s)
    return fail(ErrorCode::usage, "--wait and --no-wait exclude each other");
  BERTH_DO(settle(options.request));
  BERTH_LET(auto look, look_options(options.request, {}));
  BERTH_LET(const auto wait, wait_in_force(options, look.policy));
  return LeaseRequest{options.request.request,
                      render::request_in_words(options.request.request),
                      std::move(look),
                      options.request.uuids,
                      wait,
                      options.note};
}

Result<leasing::HeldLease> take_lease(const leasing::SourceAccess& source, leasing::Place& place,
                                      const LeaseRequest& asked, const leasing::TicketWords& words) {
  leasing::LookOptions look = asked.look;
  look.within = place.within;
  if (!place.believe_mask) look.mask.reset();
  WaitReport report(asked.request_words);
  leasing::Patience patience;
  patience.wait = asked.wait_s != 0;
  if (asked.wait_s) patience.limit = std::chrono::seconds(*asked.wait_s);
  patience.tell_time = report.is_live();
  patience.on_wait = [&report](const leasing::Waiting& waiting) { report.show(waiting); };
  auto acquired = leasing::acquire_in_turn(source, *place.store, asked.request, look, words, patience);
  report.end();
  if (!acquired) return std::unexpected(acquired.error());
  if (auto* refusal = std::get_if<leasing::Refused>(&*acquired))
    return std::unexpected(no_lease(asked, std::move(*refusal), *place.store));
  return std::get<leasing::HeldLease>(std::move(*acquired));
}

std::vector<std::pair<std::string, std::string>> lease_environment(const leasing::Place& place,
                                                                   const leasing::HeldLease& lease,
                                                                   bool uuids) {
  const Choice choice{lease.ticket().devices, {}};
  return {{"CUDA_VISIBLE_DEVICES", visible_devices(choice, lease.world().facts.snapshot, uuids)},
          {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
          {"BERTH_LEASE", place.path_of(lease.ticket().id)}};
}

}  // namespace berth::cli
