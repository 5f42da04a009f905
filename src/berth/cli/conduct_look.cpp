#include "berth/cli/conduct_look.h"

#include <fmt/format.h>

#include "berth/cli/named_lease.h"
#include "berth/cli/question.h"

namespace berth::cli {

Result<ConductLook> look_at_conduct(Environment& environment, const std::vector<std::string>& words,
                                    source::SourceKind kind) {
  BERTH_LET(const auto named, find_named_lease(words));
  RequestOptions everything;
  everything.ignore_mask = true;
  BERTH_LET(const auto look, look_options(everything, ReadingKind::process_details));
  BERTH_LET(const auto source, environment.source(kind));
  BERTH_LET(auto world, leasing::look(*source, *named.store, everything.request, look));
  const Ticket* lease = find_ticket(world.ledger, named.ticket.id);
  if (lease == nullptr)
    return fail(ErrorCode::failure, fmt::format("the lease {} has just ended", to_text(named.ticket.id)));
  return ConductLook{*lease, short_name(world.ledger, lease->id), std::move(world)};
}

}  // namespace berth::cli
