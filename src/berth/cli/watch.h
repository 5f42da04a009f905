#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "berth/cli/command.h"
#include "berth/render/json.h"

namespace berth::cli {

/// `--json` and `--watch`, of the commands that show how things stand.
struct WatchOptions {
  bool json = false;
  std::optional<std::int64_t> interval_s;
};

/// Adds both. `schema_help` is the help of --json, which names the schema.
void add_watch_options(Syntax& syntax, WatchOptions& options, std::string_view schema_help);

/// The answer once, or again and again until it is interrupted or nobody reads.
Result<Output> show(const WatchOptions& options,
                    const std::function<Result<Output>(render::Layout layout)>& look);

}  // namespace berth::cli
