#pragma once

#include <string_view>

#include "berth/cli/serve.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/lab_hosts.h"

namespace berth::cli {

/// The options of `berth list`.
struct ListOptions {
  command::RequestOptions request;
  std::vector<std::string> devices;  ///< selectors; empty: all
  bool whole = false;                ///< leases and processes too
  bool csv = false;
  command::WatchOptions watch;
  PeerOptions hub;  ///< url "": list this machine
  command::AnywhereOptions anywhere;
};

/// The options write into `options`, which must outlive the syntax.
command::Syntax list_syntax(ListOptions& options);

}  // namespace berth::cli
