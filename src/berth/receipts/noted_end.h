#pragma once

#include "berth/sys/job_process.h"
#include "berth/verdict/outcomes.h"

namespace berth::receipts {

/// How a command ended that nobody asked Berth to end. By itself and badly: with a status that says
/// failure, or by a signal of its own making. A signal from outside, and a program that cannot be
/// found, say nothing of the devices.
Ending ending_of(const sys::JobEnding& ending);

}  // namespace berth::receipts
