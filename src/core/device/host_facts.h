#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth {

/// What a request may ask of the machine itself, whatever its devices: `host~a100 and
/// label=nvlink`.
struct HostFacts {
  std::string name;                 ///< from the site file, else from the kernel
  std::vector<std::string> labels;  ///< "nvlink", "room:b12"; from the site file

  bool operator==(const HostFacts&) const = default;
};

/// Checks a label, or the name of a host. It must be one word, because it is written in expressions
/// and on command lines. Error: `usage`.
Result<void> check_label(std::string_view label);

}  // namespace berth
