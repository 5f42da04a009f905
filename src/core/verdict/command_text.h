#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/verdict/ledger.h"
#include "berth/verdict/site_policy.h"
#include "berth/verdict/verdict.h"

namespace berth {

/// The part of a command line that others may read. With CommandVisibility::full, that is all but
/// the values of words that name a key, a token, a secret or a password: "train.py --api-key=***".
std::string told_command(std::string_view command, CommandVisibility telling);

/// Shortens all commands to what the site file allows others to read, except those of `own`, the
/// user who will read them. Programs that the site ignores can still be recognised.
void tell_commands(Facts& facts, Ledger& ledger, std::optional<std::uint32_t> own);

}  // namespace berth
