#include "berth/hosts/model/lab_entry.h"

#include <fmt/format.h>

namespace berth::caller {

Error why_unopened(const Placed& placed) {
  const bool no_wait = *placed.until == placed.since;
  const auto reason = [&]() -> std::string {
    if (const auto* agent = std::get_if<AgentMissing>(&placed.obstacle)) return agent->why.message;
    if (const auto* store = std::get_if<StoreMissing>(&placed.obstacle))
      return fmt::format("the store of the lab does not answer: {}", store->why);
    if (!placed.is_told) return "the store of the lab does not answer";
    if (!placed.limit.empty()) return placed.limit;
    return no_wait ? "earlier requests wait for it in the queue of the lab"
                   : "earlier requests waited for it in the queue of the lab until the time was over";
  };
  return {no_wait ? ErrorCode::not_now : ErrorCode::timed_out, reason()};
}

std::string name_in_lab(std::string_view host) {
  return std::string(host.substr(host.rfind('@') + 1));
}

}  // namespace berth::caller
