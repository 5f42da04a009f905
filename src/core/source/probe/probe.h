#pragma once

#include "berth/source/reader.h"

namespace berth::source {

/// The probe's main: reads requests from `in` and writes their answers to `out`, until `in` ends.
/// It is the only process that loads the driver, so it is the only one that the driver can hang or
/// kill.
///
/// Where `in` is a socket, a byte goes back on it when there is something to take from `out`:
/// whoever asked sleeps there, and is not woken for every step.
///
/// `expected`: the source that will be asked for; it is loaded while the first request is still to
/// come. `version`: of this program.
///
/// Ends the process at once: a driver's own clearing up can hang as any call of it, and the kernel
/// does it anyway.
///
/// REQUIRES: the process is the probe's own. It gets the short name `kProbeName`, which it keeps
/// when it has ended.
inline constexpr const char* kProbeName = "berth __probe";
[[noreturn]] void run_probe(int in, int out, SourceKind expected, std::string_view version);

}  // namespace berth::source
