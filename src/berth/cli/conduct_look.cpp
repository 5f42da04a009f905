#include "berth/cli/conduct_look.h"

#include <fmt/format.h>

#include "berth/cli/named_lease.h"
#include "berth/cli/question.h"

namespace berth::cli {

Result<ConductLook> look_at_conduct(Environment& environment, const std::vector<std::string>& words,
                                    source::SourceKind kind) {
  const auto named = find_named_lease(words);
  if (!named) return std::unexpected(named.error());
  RequestOptions everything;
  everything.ignore_mask = true;
  const auto look = look_options(everything, ReadingKind::process_details);
  if (!look) return std::unexpected(look.error());
  const auto source = environment.source(kind);
  if (!source) return std::unexpected(source.error());
  auto world = leasing::look(**source, *named->store, everything.request, *look);
  if (!world) return std::unexpected(world.error());
  const Ticket* lease = find_ticket(world->ledger, named->ticket.id);
  if (lease == nullptr)
    return fail(ErrorCode::failure, fmt::format("the lease {} has just ended", to_text(named->ticket.id)));
  return ConductLook{*lease, short_name(world->ledger, lease->id), std::move(*world)};
}

}  // namespace berth::cli
