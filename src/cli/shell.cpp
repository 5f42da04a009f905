#include "berth/command/command.h"
#include "berth/hosts/caller.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/run.h"

namespace berth::cli {
namespace {

constexpr std::string_view kShellAbout =
    "Works as `berth run` with your shell ($SHELL, or your login shell). The lease ends when the "
    "shell and everything that it has started have ended. What stays (ssh-agent, tmux, nohup) keeps "
    "the GPU, so start it before. BERTH_PROMPT holds a text like \"(GPU 3) \" for the prompt; in "
    "~/.bashrc:\n"
    "\n"
    "    PS1=\"$BERTH_PROMPT$PS1\"";

class ShellCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kShellAbout;
    add_lease_options(syntax, options_.lease);
    add_anywhere_options(syntax, hosts_, "your shell on the first host that has the GPUs, through ssh");
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(options_.lease));
    BERTH_DO(settle(hosts_));
    options_.shell = true;
    if (hosts_.anywhere) {
      BERTH_LET(const auto status, hosts::run_anywhere({options_, {hosts_}}));
      return command::Output{.status = status};
    }
    options_.command = {supervise::users_shell()};
    BERTH_LET(const auto first_look, supervise::time_of_first_look());
    options_.first_look = first_look;
    BERTH_LET(const auto status, run_leased(environment, options_));
    return command::Output{.status = status};
  }

 private:
  supervise::RunOptions options_;
  command::AnywhereOptions hosts_;
};

}  // namespace

BERTH_COMMAND(make_shell, ShellCommand);

}  // namespace berth::cli
