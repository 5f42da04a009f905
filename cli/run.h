#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "berth/core/request.h"
#include "berth/lease/acquire.h"
#include "berth/lease/look.h"

namespace berth::cli {

/// What `berth run` was asked to do.
struct RunOptions {
  Request request;
  std::string request_words;  ///< the request as people read it
  leasing::LookOptions look;  ///< `within` is filled in here; `mask` is dropped with a dead BERTH_LEASE
  bool uuids = false;         ///< --ids uuid
  bool keep = false;          ///< --keep: for as long as anything lives that the command has started
  bool exec = false;          ///< --exec: the command replaces this process
  std::optional<std::int64_t> wait_s;  ///< --wait, --no-wait is 0; nullopt: for ever
  std::string note;                    ///< --note
  std::vector<std::string> command;    ///< never empty
};

/// Takes a lease, runs the command in it, and gives the exit status that berth is to end with. Does not
/// return when the command was killed by a signal: then this process is too. Error: nothing was run.
Result<int> run_leased(const leasing::SourceAccess& source, const RunOptions& options);

}  // namespace berth::cli
