#pragma once

#include <string>

#include "berth/command/command.h"
#include "berth/http/settings.h"

namespace berth::cli {

/// What `berth store` takes.
struct StoreOptions {
  http::StoreSettings store;
  std::string config_file;  ///< of an agent, which says the same; "": none
  bool json = false;
};

/// The options write into `options`, which must outlive the syntax.
command::Syntax store_syntax(StoreOptions& options);

}  // namespace berth::cli
