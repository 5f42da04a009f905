#pragma once

#include "berth/cli/environment.h"
#include "berth/cli/request_options.h"
#include "berth/core/verdict.h"
#include "berth/lease/look.h"
#include "berth/lease/place.h"

namespace berth::cli {

/// Which of the machine's devices count, and by which rules, from the options and the environment.
Result<leasing::LookOptions> look_options(const RequestOptions& options, ReadingSet also_read);

/// A sentence for the user at once, on the error stream.
void tell(const std::string& sentence);

/// Value of an environment variable; nullopt: not set.
std::optional<std::string> variable_if_set(const char* name);

/// The machine, or the lease that this process is inside of; `look` learns which devices exist there.
/// Warnings have been told.
Result<leasing::Place> find_place(leasing::LookOptions& look);

/// The machine and the books as they are now, with what judging the request needs, and `also_read`.
Result<leasing::World> look_at_machine(Environment& environment, const RequestOptions& options,
                                       ReadingSet also_read);

/// What the reader should know about the answer, whole lines for the error stream: an old snapshot, a mask
/// that was cut off, tickets that cannot be read.
std::string notes_on(const leasing::World& world);

}  // namespace berth::cli
