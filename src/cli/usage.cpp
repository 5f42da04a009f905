// The row of `berth usage` in the table of commands. The program berth-serve asks the agent, since
// it has an HTTP client and SQLite.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "berth/base/printable.h"
#include "berth/base/units.h"
#include "berth/cli/usage_options.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/messages.h"
#include "berth/command/serve_program.h"
#include "berth/hosts/far_call.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/usage/usage.h"
#include "berth/usage/usage_total.h"
#include "berth/view/usage.h"

namespace berth::cli {
namespace {

constexpr std::string_view kUsageAbout =
    "Shows a line for each user, for each GPU, or for the jobs of each name: the number of leases, their "
    "GPU-hours, and the hours in which a process of the lease computed on the GPU. Asks the agent of this "
    "machine, which counts them (berth serve); with --url another agent or a hub. With --file it reads the "
    "history of an agent that no longer runs. Hours begin with full ones: --since 1h at 14:20 is from 13:00 "
    "on.";

class Usage : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = usage_syntax(options_); }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(options_.anywhere));
    if (options_.anywhere.anywhere) return usage_of_hosts();
    return std::unexpected(command::become_berth_serve(command::kUsageWord, environment.words().subspan(1)));
  }

 private:
  Result<command::Output> usage_of_hosts() const {
    if (options_.letter)
      return fail(ErrorCode::usage,
                  "--letter is about one machine: without --anywhere, or with --url for its agent");
    if (!options_.asking.url.empty() || !options_.file.empty())
      return fail(ErrorCode::usage, "--anywhere excludes --url, --hub and --file");
    UsageBy by{};
    if (!read_value(options_.by, by)) return fail(ErrorCode::usage, "--by is user, device or job");
    BERTH_LET(const auto meant, hosts::hosts_meant(options_.anywhere));
    const auto documents =
        hosts::documents_of(meant, {"usage", "--json", "--since=" + options_.since, "--by=" + options_.by});
    std::vector<std::pair<std::string, berth::Usage>> told;
    std::vector<std::string> missing;
    command::Output output;
    for (std::size_t i = 0; i < meant.size(); ++i) {
      auto usage = documents[i] ? view::usage_from_json(*documents[i])
                                : Result<berth::Usage>(std::unexpected(documents[i].error()));
      if (usage && usage->by == by) {
        told.emplace_back(meant[i].name, *std::move(usage));
        continue;
      }
      missing.push_back(meant[i].name);
      output.err += command::as_lines({fmt::format(
          "{}: {}", meant[i].name,
          usage ? "it does not answer what it was asked" : printable_lines(usage.error().message))});
    }
    const berth::Usage usage = total_usage(by, told, std::move(missing), UsersAre::of_hosts);
    if (told.empty()) {
      output.err += command::as_lines({std::string(view::kNoHostTells)});
      output.status = outcome_of(ErrorCode::failure).exit_status;
      return output;
    }
    output.out = options_.json ? view::usage_json(usage, view::Layout::lines)
                               : view::usage_table(usage, command::Environment::style_of(1));
    return output;
  }

  UsageOptions options_;
};

}  // namespace

command::Syntax usage_syntax(UsageOptions& options) {
  command::Syntax syntax;
  syntax.about = kUsageAbout;
  syntax.option("Options", "since", "TIME", "from so long ago: 24h, 7d (default), 30d",
                [&options](std::string_view value) -> Result<void> {
                  BERTH_DO(seconds_from_text(value));
                  options.since = value;
                  return {};
                });
  syntax.option("Options", "by", "WHAT", "user (default), device, or job: the name of a job",
                command::text_into(options.by), 0, {"user", "device", "job"});
  syntax.flag("Options", "json", "as JSON (docs/schema/usage.json)", options.json);
  syntax.flag("Options", "letter",
              "as a page of text for a mail, of one machine: hours leased and idle, waits, memory, sick GPUs",
              options.letter);
  syntax.text("Options", "url", "URL", "ask this agent or hub: https://node01:8420", options.asking.url);
  syntax.text("Options", "hub", "URL", "the same", options.asking.url);
  syntax.text("Options", "file", "FILE", "read this history; no agent may have it", options.file);
  add_peer_options(syntax, "Options", options.asking);
  add_anywhere_options(syntax, options.anywhere,
                       "the agents of all hosts of the lab, each asked through ssh");
  return syntax;
}

BERTH_COMMAND(make_usage, Usage);

}  // namespace berth::cli
