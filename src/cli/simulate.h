#pragma once

#include <optional>
#include <string>

#include "berth/cli/serve.h"
#include "berth/command/command.h"
#include "berth/source/source.h"
#include "berth/usage/usage.h"

namespace berth::cli {

/// The options of `berth simulate`.
struct SimulateOptions {
  std::string jobs;  ///< a file; "-": standard input
  bool from_history = false;
  std::string since;   ///< "": the agent's default
  PeerOptions asking;  ///< url "": the agent of this machine
  std::string file;    ///< a history file; "": an agent is asked
  std::optional<unsigned> devices;
  std::optional<Moment> assumed_s;
  std::optional<QueueOrder> order;
  std::optional<Expect> expect;
  std::optional<Moment> longest_wait_s;
  bool backfill = false;
  bool no_backfill = false;
  bool json = false;
  source::SourceKind source = source::SourceKind::kAutomatic;
};

/// The options write into `options`, which must outlive the syntax.
command::Syntax simulate_syntax(SimulateOptions& options);

/// Error: `usage` if options contradict each other.
Result<void> check_options(const SimulateOptions& options);

/// What becomes of the jobs under the rules of this machine, and under the rules of the options.
/// `recorded`: what really became of them; null: not known.
Result<command::Output> simulated(const SimulateOptions& options, const Workload& workload,
                                  const RecordedWorkload* recorded);

}  // namespace berth::cli
