#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/hosts/model/caller.h"

namespace berth::caller {

/// A line of the agent (docs/store-protocol.md): its word, and the rest. nullopt: the caller has
/// nothing to do for it, or only an agent of a later version says it.
std::optional<What> said_by_agent(std::string_view word, const std::string& rest);

}  // namespace berth::caller
