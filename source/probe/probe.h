#pragma once

#include "berth/source/reader.h"

namespace berth::source {

/// The probe's main: reads requests from `in` and writes their answers to `out`, until `in` ends. It is the
/// only process that loads the driver, so it is the only one that the driver can hang or kill. `expected`:
/// the source that will be asked for; it is loaded while the first request is still to come. Gives the exit
/// status.
int run_probe(int in, int out, SourceKind expected);

}  // namespace berth::source
