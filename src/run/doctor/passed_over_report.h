#pragma once

#include <vector>

#include "berth/view/doctor.h"

namespace berth::leasing {

/// The devices that requests of some user pass over. Changes nothing.
std::vector<view::Finding> examine_passed_over(const Snapshot& snapshot);

}  // namespace berth::leasing
