#pragma once

#include "berth/source/probe_source.h"

namespace berth::leasing {

/// The options of a probe, as the environment sets them: where the probe keeps what it learns, and
/// its deadline.
source::ProbeOptions probe_options();

}  // namespace berth::leasing
