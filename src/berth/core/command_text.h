#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/core/ledger.h"
#include "berth/core/site_policy.h"
#include "berth/core/verdict.h"

namespace berth {

/// What others may read of a command line. With CommandTelling::full: all but the values of words that name a
/// key, a token, a secret or a password: "train.py --api-key=***".
std::string told_command(std::string_view command, CommandTelling telling);

/// Leaves of all commands in it what the site's file says, but for those of `own`, to whom it is told. What
/// the site ignores is still known by its program.
void tell_commands(Facts& facts, Ledger& ledger, std::optional<std::uint32_t> own);

}  // namespace berth
