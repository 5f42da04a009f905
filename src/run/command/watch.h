#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "berth/command/command.h"
#include "berth/view/layout.h"

namespace berth::command {

/// `--json` and `--watch`, for the commands that show the present state.
struct WatchOptions {
  bool json = false;
  std::optional<std::int64_t> interval_s;
};

/// Adds both. `schema_help`: the help text of --json, which names the schema.
void add_watch_options(Syntax& syntax, WatchOptions& options, std::string_view schema_help);

/// Gives the answer once; with --watch again and again, until it is interrupted or nobody reads.
Result<Output> show(const WatchOptions& options,
                    const std::function<Result<Output>(view::Layout layout)>& look);

}  // namespace berth::command
