#pragma once

#include "berth/source/probe_source.h"

namespace berth::leasing {

/// A probe as the environment wants it: where it keeps what it learns, and its deadline.
source::ProbeOptions probe_options();

}  // namespace berth::leasing
