#include "usage_command.h"

#include <fmt/format.h>

#include <ctime>

#include "asked_history.h"
#include "berth/cli/usage_options.h"
#include "berth/command/environment.h"
#include "berth/history/model/question.h"
#include "berth/view/usage.h"

namespace berth::serve {
namespace {

Result<Usage> asked(const command::PeerOptions& options, const history::UsageQuestion& question) {
  BERTH_LET(const auto answer, ask_agent(options, fmt::format("/api/v1/usage?since={}s&by={}",
                                                              question.since_s, to_text(question.by))));
  auto usage = view::usage_from_json(answer.document);
  if (!usage) return std::unexpected(context(usage.error(), answer.asking));
  return usage;
}

Result<Usage> read(const std::string& path, const history::UsageQuestion& question) {
  BERTH_LET(auto file, open_history(path));
  const std::int64_t now_s = std::time(nullptr);
  auto usage = file.usage(question.by, {history::step_of(now_s - question.since_s, 3600), now_s});
  if (!usage) return std::unexpected(fault_of_history(path, usage.error()));
  return std::move(*usage);
}

}  // namespace

Result<command::Output> usage_command(std::span<char*> words) {
  cli::UsageOptions options;
  const command::Syntax syntax = cli::usage_syntax(options);
  if (const auto parsed = command::parse(syntax, "berth usage", words); !parsed)
    return std::unexpected(parsed.error());
  BERTH_LET(const auto question, history::usage_question({{"since", options.since}, {"by", options.by}}));
  if (!options.file.empty() && !options.asking.url.empty())
    return fail(ErrorCode::usage, "--file and --url contradict each other: give one of them");
  BERTH_LET(const auto usage,
            options.file.empty() ? asked(options.asking, question) : read(options.file, question));
  return command::Output{.out = options.json ? view::usage_json(usage, view::Layout::lines)
                                             : view::usage_table(usage, command::Environment::style_of(1))};
}

}  // namespace berth::serve
