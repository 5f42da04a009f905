#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"

namespace berth {

/// What a request may ask of the machine itself, whatever its devices: `host~a100 and label=nvlink`.
struct HostFacts {
  std::string name;                 ///< as the site file calls it, else as the kernel does
  std::vector<std::string> labels;  ///< "nvlink", "room:b12"; of the site file

  bool operator==(const HostFacts&) const = default;
};

/// What is wrong with a label, or with a host's name of itself: it is written in expressions and on command
/// lines, so it is a word there. Error: `usage`.
Result<void> check_label(std::string_view label);

}  // namespace berth
