#pragma once

#include <string>

namespace berth::cli {

/// "berth 0.1.0\n".
std::string version_text();

}  // namespace berth::cli
