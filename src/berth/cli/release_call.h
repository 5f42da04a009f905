#pragma once

#include <optional>
#include <string>

#include "berth/core/ledger.h"
#include "berth/sys/job_process.h"

namespace berth::cli {

/// "root: the machine goes down at 18:00"; "root".
std::string in_words(const ReleaseCall& call);

/// Who has asked by `berth release` that the lease ends. nullopt: it was somebody's own signal that came.
/// `call`: what the ticket says. `sender`: who has sent the signal.
std::optional<std::string> who_released(const ReleaseCall& call, const std::optional<sys::Sender>& sender);

}  // namespace berth::cli
