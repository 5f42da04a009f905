#include "usage_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <ctime>

#include "berth/agent/settings.h"
#include "berth/cli/environment.h"
#include "berth/cli/usage_options.h"
#include "berth/history/history_file.h"
#include "berth/history/question.h"
#include "berth/net/asking.h"
#include "berth/net/client.h"
#include "berth/render/usage.h"
#include "berth/sys/system_error.h"

namespace berth::serve {
namespace {

constexpr std::chrono::seconds kUsagePatience{30};  // longer than an agent itself waits for its disk
constexpr std::string_view kServiceSocket = "/run/berth-serve/agent.sock";

std::string own_agent() {
  struct stat status{};
  if (::stat(kServiceSocket.data(), &status) == 0 && S_ISSOCK(status.st_mode))
    return fmt::format("unix:{}", kServiceSocket);
  return fmt::format("http://{}", kDefaultAddress);
}

Result<Usage> asked(cli::AskingOptions options, const history::UsageQuestion& question) {
  if (options.url.empty()) options.url = own_agent();
  BERTH_LET(const auto peer, cli::peer_of(options));
  const std::string target =
      fmt::format("/api/v1/usage?since={}s&by={}", question.since_s, to_text(question.by));
  const auto response = get_once(peer, target, kUsagePatience);
  const std::string asking = fmt::format("asking {}", url_of(peer));
  if (!response) {
    return fail(ErrorCode::failure,
                fmt::format("{}: {}, or read the file of an agent that does not run with --file FILE", asking,
                            response.error().message));
  }
  BERTH_LET(const auto text, document_in(*response, asking));
  auto usage = render::usage_from_json(text);
  if (!usage) return std::unexpected(context(usage.error(), asking));
  return usage;
}

Result<Usage> read(const std::string& path, const history::UsageQuestion& question) {
  const std::string reading = fmt::format("reading {}", path);
  struct stat status{};
  // Opening it would make one.
  if (::stat(path.c_str(), &status) != 0) return sys::fail_errno(reading);
  auto file = history::HistoryFile::open(path);
  if (!file) {
    const bool taken = file.error().kind == history::DatabaseError::Kind::taken;
    return fail(ErrorCode::failure,
                fmt::format("{}: {}", reading,
                            taken ? "an agent has it; ask that one, without --file" : file.error().message));
  }
  const std::int64_t now_s = std::time(nullptr);
  auto usage = file->usage(question.by, {history::step_of(now_s - question.since_s, 3600), now_s});
  if (!usage) return fail(ErrorCode::failure, fmt::format("{}: {}", reading, usage.error().message));
  return std::move(*usage);
}

}  // namespace

Result<cli::Output> usage_command(std::span<char*> words) {
  cli::UsageOptions options;
  const cli::Syntax syntax = cli::usage_syntax(options);
  if (const auto parsed = cli::parse(syntax, "berth usage", words); !parsed)
    return std::unexpected(parsed.error());
  BERTH_LET(const auto question, history::usage_question({{"since", options.since}, {"by", options.by}}));
  if (!options.file.empty() && !options.asking.url.empty())
    return fail(ErrorCode::usage, "--file and --url contradict each other: give one of them");
  BERTH_LET(const auto usage,
            options.file.empty() ? asked(options.asking, question) : read(options.file, question));
  return cli::Output{.out = options.json ? render::usage_json(usage, render::Layout::lines)
                                         : render::usage_table(usage, cli::Environment::style_of(1))};
}

}  // namespace berth::serve
