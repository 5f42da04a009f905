#pragma once

#include <string_view>

#include "berth/command/asking_options.h"
#include "berth/command/open_session.h"
#include "berth/command/watch.h"
#include "berth/hosts/anywhere.h"

namespace berth::cli {

/// The options of `berth list`.
struct ListOptions {
  RequestOptions request;
  WatchOptions watch;
  AskingOptions hub;  ///< url "": list this machine
  AnywhereOptions anywhere;
};

/// The options write into `options`, which must outlive the syntax.
Syntax list_syntax(ListOptions& options);

}  // namespace berth::cli
