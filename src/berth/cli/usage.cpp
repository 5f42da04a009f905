// The row of `berth usage` in the table of commands. Who asks is berth-serve, which has a client and SQLite.
#include "berth/cli/command.h"
#include "berth/cli/serve_program.h"
#include "berth/cli/usage_options.h"

namespace berth::cli {
namespace {

constexpr std::string_view kUsageAbout =
    "Shows a line for each user, for each GPU, or for the jobs of each name: the number of leases, their "
    "GPU-hours, and the "
    "hours in which a process of the lease computed on the GPU. Asks the agent of this machine, "
    "which counts them (berth serve); with --url another agent or a hub. With --file it reads the "
    "history of an agent that no longer runs. Hours begin with full ones: --since 1h at 14:20 is "
    "from 13:00 on.";

class Usage : public Command {
 public:
  Syntax syntax() override { return usage_syntax(options_); }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    return std::unexpected(become_berth_serve(kUsageWord, environment.words().subspan(1)));
  }

 private:
  UsageOptions options_;
};

}  // namespace

Syntax usage_syntax(UsageOptions& options) {
  const auto text = [](std::string_view name, std::string_view value, std::string_view help,
                       std::string& to) {
    return Option{"Options", 0, name, value, help, {}, store_text(to)};
  };
  Syntax syntax;
  syntax.about = kUsageAbout;
  syntax.options = {
      text("since", "TIME", "from so long ago: 24h, 7d (default), 30d", options.since),
      {"Options",
       0,
       "by",
       "WHAT",
       "user (default), device, or job: the name of a job",
       {"user", "device", "job"},
       store_text(options.by)},
      {"Options", 0, "json", "", "as JSON (docs/schema/usage.json)", {}, raise_flag(options.json)},
      text("url", "URL", "ask this agent or hub: https://node01:8420", options.asking.url),
      text("hub", "URL", "the same", options.asking.url),
      text("file", "FILE", "read this history; no agent may have it", options.file),
  };
  add_asking_options(syntax, "Options", options.asking);
  return syntax;
}

std::unique_ptr<Command> make_usage() {
  return std::make_unique<Usage>();
}

}  // namespace berth::cli
