#pragma once

#include "berth/lease/look.h"
#include "berth/machines/host.h"
#include "berth/view/text.h"

namespace berth::leasing {

/// The world as one machine among others is told of: its lists bounded, each waiting request with
/// its reason in words.
Result<HostReport> host_report(World world, const IdleTimes& idle, const view::Style& style);

}  // namespace berth::leasing
