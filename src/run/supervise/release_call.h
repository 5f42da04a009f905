#pragma once

#include <optional>
#include <string>

#include "berth/sys/job_process.h"
#include "berth/verdict/ledger.h"

namespace berth::supervise {

/// "root: the machine goes down at 18:00"; "root".
std::string in_words(const ReleaseCall& call);

/// Who has asked by `berth release` that the lease end. nullopt: the signal did not come from
/// `berth release`. `call`: what the ticket says. `sender`: the process that sent the signal.
std::optional<std::string> who_released(const ReleaseCall& call, const std::optional<sys::Sender>& sender);

}  // namespace berth::supervise
