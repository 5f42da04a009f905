#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "berth/base/error.h"
#include "berth/base/steady_time.h"

// The entry of a request in the lab queue, as its caller (caller_step.h) knows it.
namespace berth::caller {

// Why the agent does not tell the position.

/// The agent was not reached yet. It is waited for until then.
struct AgentMissing {
  Error why;
  SteadyTime until;
};
/// The store does not answer.
struct StoreMissing {
  std::string why;
};
/// Nothing is in its way.
struct Nothing {};
using Obstacle = std::variant<Nothing, AgentMissing, StoreMissing>;

// How far the request has come in the lab queue.

/// The site has no lab queue.
struct NoLab {};
/// It waits for no host there: it is about to enter, or it knows from no offer yet for which hosts.
struct NotQueued {};
struct Queued {
  SteadyTime since;
  std::optional<SteadyTime> until{};  ///< it waits no longer for a host to be opened
  Obstacle obstacle{};
  std::string limit{};   ///< why its user may not start it now; "": the user may
  bool is_told = false;  ///< which hosts are open to it
  /// The store is asked whether the command may start on this host, which grants it.
  std::optional<std::size_t> asked{};
};
using Entry = std::variant<NoLab, NotQueued, Queued>;

/// Why the request no longer waits for the hosts that were not opened. REQUIRES: the wait has an
/// end.
Error why_unopened(const Queued& queued);

/// In the lab queue a host is one host, whoever logs in there.
std::string name_in_lab(std::string_view host);

}  // namespace berth::caller
