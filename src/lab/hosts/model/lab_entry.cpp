#include "berth/hosts/model/lab_entry.h"

#include <fmt/format.h>

namespace berth::caller {

Error why_unopened(const Queued& queued) {
  const bool no_wait = *queued.until == queued.since;
  const auto reason = [&]() -> std::string {
    if (const auto* agent = std::get_if<AgentMissing>(&queued.obstacle)) return agent->why.message;
    if (const auto* store = std::get_if<StoreMissing>(&queued.obstacle))
      return fmt::format("the store of the lab does not answer: {}", store->why);
    if (!queued.is_told) return "the store of the lab does not answer";
    if (!queued.limit.empty()) return queued.limit;
    return no_wait ? "earlier requests wait for it in the queue of the lab"
                   : "earlier requests waited for it in the queue of the lab until the time was over";
  };
  return {no_wait ? ErrorCode::not_now : ErrorCode::timed_out, reason()};
}

std::string name_in_lab(std::string_view host) {
  return std::string(host.substr(host.rfind('@') + 1));
}

}  // namespace berth::caller
