#pragma once

#include <span>
#include <string>

#include "berth/base/error.h"
#include "berth/cli/serve.h"
#include "berth/command/command.h"
#include "berth/history/history_file.h"

// Commands that need a history: of an agent that is asked, or of a file that no agent has.
namespace berth::serve {

/// A document and who gave it, for messages.
struct AskedHistory {
  std::string document;
  std::string asking;  ///< "asking http://…"
};
/// Without a URL the agent of this machine is asked.
Result<AskedHistory> ask_agent(cli::PeerOptions options, const std::string& target);

/// Error: also where there is none yet.
Result<history::HistoryFile> open_history(const std::string& path);

/// As an error of whoever read this file.
Error fault_of_history(const std::string& path, const history::DatabaseError& fault);

/// What an agent knows of the past, for `berth timeline` and `berth top`: --since, and whom to ask.
Result<command::Output> past_command(std::span<char*> words);

/// `berth simulate --from-history`: `words` are its options.
Result<command::Output> simulate_command(std::span<char*> words);

/// `berth usage`: `words` are its options.
Result<command::Output> usage_command(std::span<char*> words);

}  // namespace berth::serve
