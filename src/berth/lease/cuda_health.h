#pragma once

#include <string>
#include <vector>

#include "berth/lease/session.h"
#include "berth/view/doctor.h"

namespace berth::leasing {

/// Whether CUDA starts. NVML may say that all is well while no program can start it: after a suspend, or
/// without the fabric manager. It starts in a child, with this environment. A context is made only on devices
/// that nobody has, under a lease, so that nobody takes it for a program that did not ask. No findings: there
/// is no device of NVIDIA.
std::vector<view::Finding> examine_cuda(const Snapshot& snapshot, const SourceAccess& access,
                                        const std::vector<std::string>& environment);

}  // namespace berth::leasing
