#pragma once

#include <string>
#include <string_view>

#include "machine/scenario.h"

namespace berth::sim {

/// Reads a scenario from TOML text. Returns "" or the first thing that is wrong, as "FILE:LINE:
/// what". `scenario` is complete only if "" was returned. Unknown keys are errors: a misspelt one
/// would be a machine that silently is another than the one meant.
std::string parse_scenario(std::string_view text, const std::string& file, Scenario& scenario);

}  // namespace berth::sim
