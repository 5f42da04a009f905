#pragma once

#include <string_view>

#include "berth/base/error.h"

namespace berth {

/// Two machines work together only if both have the same version of Berth. (On one machine a
/// library may come without a version; source/probe/protocol.h has that rule.) Error: `failure` if
/// the Berth of the host is of another version than ours.
Result<void> check_host_version(std::string_view version_there);

}  // namespace berth
