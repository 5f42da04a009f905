#include "berth/cli/command.h"
#include "berth/cli/question.h"
#include "berth/cli/run.h"
#include "berth/core/units.h"
#include "berth/render/explain.h"

namespace berth::cli {
namespace {

constexpr std::string_view kAbout =
    "Leases the GPUs asked for, runs COMMAND with CUDA_VISIBLE_DEVICES set to them, and ends as COMMAND "
    "ends: with its status, or by its signal. The lease ends with the last process that COMMAND has started, "
    "however it ends. Options end at the first word of COMMAND. Where the GPUs are taken it waits in line, "
    "first come, first served; BERTH_WAIT (30m, 0 or forever) sets for how long.\n"
    "\n"
    "    berth run -- python train.py\n"
    "    berth run -n 2 --free 40G -- torchrun --nproc-per-node 2 train.py";

constexpr std::string_view kLease = "The lease and the command";

class Run : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.arguments = "[--] COMMAND [ARG...]";
    syntax.about = kAbout;
    syntax.options_end_at_first_word = true;
    add_request_options(syntax, request_);
    syntax.options.push_back({kLease,
                              0,
                              "no-wait",
                              "",
                              "status 75 at once where there is no such GPU now",
                              {},
                              raise_flag(no_wait_)});
    syntax.options.push_back({kLease,
                              0,
                              "wait",
                              "TIME",
                              "wait at most so long (30m), then status 124",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                const auto seconds = seconds_from_text(value);
                                if (!seconds) return std::unexpected(seconds.error());
                                wait_s_ = *seconds;
                                return {};
                              }});
    syntax.options.push_back({kLease,
                              0,
                              "keep",
                              "",
                              "keep the lease while anything that COMMAND started lives",
                              {},
                              raise_flag(options_.keep)});
    syntax.options.push_back(
        {kLease, 0, "exec", "", "replace berth by COMMAND: no parent stays", {}, raise_flag(options_.exec)});
    syntax.options.push_back(
        {kLease, 0, "note", "TEXT", "shown to others beside the lease", {}, store_text(options_.note)});
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>& words) override {
    if (words.empty())
      return fail(ErrorCode::usage, "run which command? berth run [OPTIONS] -- COMMAND [ARG...]");
    if (no_wait_ && wait_s_) return fail(ErrorCode::usage, "--wait and --no-wait exclude each other");
    if (auto settled = settle(request_); !settled) return std::unexpected(settled.error());
    auto look = look_options(request_, {});
    if (!look) return std::unexpected(look.error());
    options_.look = std::move(*look);
    const auto wait = wait_in_force(options_.look.policy);
    if (!wait) return std::unexpected(wait.error());
    options_.wait_s = *wait;
    options_.request = request_.request;
    options_.request_words = render::request_in_words(request_.request);
    options_.uuids = request_.uuids;
    options_.command = words;
    const leasing::SourceAccess source{[&] { return environment.source(request_.source); },
                                       [&] { environment.end_probe(); }};
    const auto status = run_leased(source, options_);
    if (!status) return std::unexpected(status.error());
    return Output{.status = *status};
  }

 private:
  // The command line, else BERTH_WAIT, else the site file, else for ever (nullopt).
  Result<std::optional<std::int64_t>> wait_in_force(const SitePolicy& policy) const {
    if (no_wait_) return 0;
    if (wait_s_) return wait_s_;
    const std::string_view set = variable("BERTH_WAIT");
    if (set.empty()) return policy.default_wait_s;
    if (set == "forever") return std::nullopt;
    const auto seconds = seconds_from_text(set);
    if (!seconds) return std::unexpected(context(seconds.error(), "BERTH_WAIT (a time, 0 or forever)"));
    return *seconds;
  }

  RequestOptions request_;
  RunOptions options_;
  bool no_wait_ = false;
  std::optional<std::int64_t> wait_s_;
};

}  // namespace

std::unique_ptr<Command> make_run() {
  return std::make_unique<Run>();
}

}  // namespace berth::cli
