#pragma once

#include <vector>

#include "berth/device/snapshot.h"
#include "berth/view/doctor.h"

namespace berth::leasing {

/// Whether the site files are understood, what they say, and what in them means nothing here:
/// users, groups and devices that there are not. `snapshot`: null if the devices cannot be read.
std::vector<view::Finding> examine_site_files(const Snapshot* snapshot);

}  // namespace berth::leasing
