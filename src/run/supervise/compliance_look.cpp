#include "berth/supervise/compliance_look.h"

#include "berth/base/fail.h"
#include "berth/command/named_lease.h"
#include "berth/command/open_session.h"

namespace berth::supervise {

Result<ComplianceLook> look_at_compliance(command::Environment& environment,
                                          const std::vector<std::string>& words, source::SourceKind kind) {
  BERTH_LET(auto named, command::find_named_lease(words));
  command::RequestOptions everything;
  everything.mask = MaskUse::ignore;
  everything.source = kind;
  BERTH_LET(const auto session, open_session_at(std::move(named.domain), environment, everything));
  BERTH_LET(auto world, session.look(everything.request));
  const Ticket* lease = find_ticket(world.ledger, named.ticket.id, TicketPhase::granted);
  if (lease == nullptr) return fail(ErrorCode::failure, "the lease {} has just ended", named.name);
  return ComplianceLook{*lease, short_name(world.ledger, lease->id), std::move(world)};
}

}  // namespace berth::supervise
