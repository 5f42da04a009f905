#include "past_command.h"

#include <fmt/format.h>

#include <string>

#include "asked_history.h"
#include "berth/cli/peer_options.h"
#include "berth/command/syntax.h"
#include "berth/timeline/model/timeline.h"

namespace berth::serve {

Result<command::Output> past_command(std::span<char*> words) {
  std::string since = "6h";
  cli::PeerOptions asking;
  command::Syntax syntax;
  syntax.text("Options", "since", "TIME", "from so long ago", since);
  syntax.text("Options", "url", "URL", "ask this agent", asking.url);
  cli::add_peer_options(syntax, "Options", asking);
  BERTH_DO(command::parse(syntax, "berth timeline", words));
  BERTH_LET(auto answer,
            ask_agent(asking, fmt::format("/api/v1/past-leases?since={}&points={}", since, kTimelinePoints)));
  return command::Output{.out = std::move(answer.document)};
}

}  // namespace berth::serve
