#pragma once

#include "berth/command/syntax.h"
#include "berth/http/settings.h"

namespace berth::cli {

/// The options of `berth serve`. They write into `settings`, which must outlive the syntax.
command::Syntax serve_syntax(http::Settings& settings, std::string& config_file);

/// Where the store of a lab is, and as whom it is asked.
void add_store_access_options(command::Syntax& syntax, http::StoreSettings& store);

/// Sets what the TOML file says, by the names of the options. "": no file. Error: file, line and
/// what is allowed.
Result<void> read_serve_file(const std::string& path, const command::Syntax& syntax);

}  // namespace berth::cli
