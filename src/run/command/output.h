#pragma once

#include <string>

#include "berth/base/error.h"

namespace berth::command {

/// What a command answers. `main` writes all of it in one go, and `out` only if it is complete.
struct Output {
  std::string out = {};
  std::string err = {};  ///< notes and warnings, whole lines
  int status = 0;
  std::string done = {};  ///< what is done, also if nobody can be told `out`; "": nothing
};

/// Writes the result, and gives the exit status. A failure writes nothing to the output stream.
int report(const Result<Output>& result);

}  // namespace berth::command
