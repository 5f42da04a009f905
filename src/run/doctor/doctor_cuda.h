#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "berth/device/device.h"
#include "berth/lease/session.h"
#include "berth/view/doctor.h"

namespace berth::doctor {

/// Whether CUDA starts. NVML may say that all is well while no program can start it: after a
/// suspend, or without the fabric manager. It starts in a child, with this environment. A context
/// is made only on devices that nobody has, under a lease, so that nobody takes it for a program
/// that did not ask. No findings: there is no device of NVIDIA.
std::vector<view::Finding> examine_cuda(const Snapshot& snapshot, const leasing::SourceAccess& access,
                                        const std::vector<std::string>& environment);

/// Why no program starts on this device, in words: CUDA starts in a child, with this environment,
/// and makes no context on it. "": it does, or what it says is not of the device but of the
/// installation. Takes no longer than the patience of a trial (src/core/source/cuda/cuda_trial.h).
/// REQUIRES: this process has leased it.
std::string why_cuda_fails_on(const Device& device, std::vector<std::string> environment);

/// The devices that requests of some user pass over. Changes nothing.
std::vector<view::Finding> examine_passed_over(const Snapshot& snapshot);

/// A finding for each distribution in the Python environment of this program that has a module of
/// the same name as one of ours: the original of a drop-in, or the other project that is called
/// berth on PyPI. The one that was installed last has overwritten files of the other. {} if the
/// program is in no such environment. `program`: BIN/berth of the environment.
std::vector<view::Finding> distributions_beside_ours(const std::filesystem::path& program);

}  // namespace berth::doctor
