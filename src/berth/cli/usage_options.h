#pragma once

#include <string>

#include "berth/cli/anywhere.h"
#include "berth/cli/asking_options.h"

namespace berth::cli {

/// What `berth usage` takes.
struct UsageOptions {
  std::string since = "7d";
  std::string by = "user";
  bool json = false;
  AskingOptions asking;  ///< url "": the agent of this machine
  std::string file;      ///< of a history; "": somebody is asked
  AnywhereOptions anywhere;
};

/// The options write into `options`, which must outlive the syntax.
Syntax usage_syntax(UsageOptions& options);

}  // namespace berth::cli
