#pragma once

#include <string>

namespace berth::api {

/// The berth program that serves this host: $BERTH_PROGRAM, else beside this library or executable, else
/// `berth`, for PATH to tell.
std::string find_program();

}  // namespace berth::api
