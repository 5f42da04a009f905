#pragma once

#include <string>

#include "berth/base/error.h"

namespace berth::api {

/// The berth program that serves this host: $BERTH_PROGRAM, else beside this library or executable,
/// else `berth` on PATH. Error: `failure` if there is none; the message says where it was looked
/// for, and what to do.
Result<std::string> find_program();

}  // namespace berth::api
