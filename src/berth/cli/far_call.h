#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/cli/command.h"
#include "berth/core/lab_host.h"
#include "berth/lab/wire.h"

namespace berth::cli {

/// Calls `berth WORDS` on all of these hosts at once, and gives what each says, in their order. Error: why a
/// host has said nothing.
std::vector<Result<lab::Called>> call_on_each(const std::vector<LabHost>& hosts,
                                              const std::vector<std::string>& words);

/// The same of a call that prints a document: its text. Error: also what the call said where it failed.
std::vector<Result<std::string>> documents_of(const std::vector<LabHost>& hosts,
                                              const std::vector<std::string>& words);

/// Becomes ssh that calls `berth WORDS` on this host, with our own streams. Returns only when that fails,
/// with why. REQUIRES: words that a shell takes as they are.
Error become_call_there(const LabHost& host, std::string_view words);

/// Calls `berth WORDS` on this host, and gives what it says. Error: `failure`, with the host.
Result<Output> call_there(const LabHost& host, const std::vector<std::string>& words);

}  // namespace berth::cli
