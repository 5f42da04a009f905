#pragma once

#include <string>

#include "berth/base/error.h"
#include "berth/cli/peer_options.h"
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

}  // namespace berth::serve
