#include "berth/cli/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/core/loosen.h"
#include "berth/core/mask.h"
#include "berth/render/explain.h"

namespace berth::cli {

namespace {

// A request that meets one who waits would wait behind him, however free the devices are.
bool meets_a_waiter(const Request& request, const leasing::World& world) {
  const auto able = candidates(request, world.facts);
  return !able || std::ranges::any_of(world.ledger.tickets, [&](const Ticket& ticket) {
    return ticket.phase == TicketPhase::waiting &&
           std::ranges::any_of(*able, [&](const std::string& uuid) { return is_candidate(ticket, uuid); });
  });
}

}  // namespace

std::vector<std::string> looser_requests(const Request& request, const leasing::World& world) {
  std::vector<std::string> changes;
  for (Suggestion& each : loosen(request, world.ledger, world.facts))
    if (!meets_a_waiter(each.request, world)) changes.push_back(std::move(each.change));
  return changes;
}

Error refused(const Request& request, const std::vector<Verdict>& verdicts, const Facts& facts,
              std::vector<std::string> looser) {
  const auto able = candidates(request, facts);
  if (!able) return able.error();
  const ErrorCode code = able->size() < request.count ? ErrorCode::impossible : ErrorCode::not_now;
  return {code, render::refusal({request, facts.snapshot, verdicts, able->size(), std::move(looser)},
                                Environment::style_of(2))};
}

Result<Choice> choose_from(Environment& environment, leasing::World& world, const RequestOptions& options) {
  const Request& request = options.request;
  BERTH_LET(const auto verdicts, judge(request, world.ledger, world.facts));
  const auto free = static_cast<std::size_t>(std::ranges::count_if(verdicts, &Verdict::free));
  if (free < request.count) {
    return std::unexpected(refused(request, verdicts, world.facts, looser_requests(request, world)));
  }
  const ReadingSet more = readings_to_choose(request, verdicts);
  if (more != ReadingSet() && !world.facts.snapshot.topology) {
    BERTH_LET(const auto source, environment.source(options.source));
    BERTH_LET(auto read, source->read(more));
    world.facts.snapshot.topology = std::move(read.topology);
  }
  return choose(request, verdicts, world.facts.snapshot);
}

bool counts_by_index(const Choice& choice, const Snapshot& snapshot, bool uuids) {
  return !uuids && cuda_counts_as_the_driver(snapshot) &&
         std::ranges::all_of(choice.uuids,
                             [&](const std::string& uuid) { return find_device(snapshot, uuid) != nullptr; });
}

std::string visible_devices(const Choice& choice, const Snapshot& snapshot, bool uuids) {
  if (!counts_by_index(choice, snapshot, uuids)) return fmt::format("{}", fmt::join(choice.uuids, ","));
  std::string value;
  for (const std::string& uuid : choice.uuids) {
    value += fmt::format("{}{}", value.empty() ? "" : ",", find_device(snapshot, uuid)->index);
  }
  return value;
}

}  // namespace berth::cli
