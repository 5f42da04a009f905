#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/command/command.h"
#include "berth/hosts/caller.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/model/job_tasks.h"
#include "berth/jobs/send_notice.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/run.h"
#include "berth/view/receipt.h"
#include "berth/view/verdict_text.h"

namespace berth::cli {
namespace {

constexpr std::string_view kRunAbout =
    "Leases GPUs, runs COMMAND with CUDA_VISIBLE_DEVICES (AMD GPUs: ROCR_VISIBLE_DEVICES) set to "
    "them, and ends as COMMAND ends: with its status, or by its signal. The lease ends with the last "
    "process that COMMAND has started, however it ends. If the GPUs are taken, it waits in the "
    "queue, first come, first served; BERTH_WAIT (30m, 0 or forever) limits the wait. Options end at "
    "the first word of COMMAND.\n"
    "\n"
    "In COMMAND, {ids} is replaced by the indices of the GPUs and {uuids} by their UUIDs.\n"
    "\n"
    "    berth run -- python train.py\n"
    "    berth run -n 2 --free 40G -- torchrun --nproc-per-node 2 train.py\n"
    "    berth run -- docker run --init --gpus '\"device={uuids}\"' -e BERTH_LEASE img";

class RunCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[--] COMMAND [ARG...]";
    syntax.about = kRunAbout;
    syntax.options_end_at_first_word = true;
    add_lease_options(syntax, options_);
    syntax.flag(supervise::kLeaseGroup, "end-with-command",
                "end the lease when COMMAND ends, even if processes that it started still live",
                options_.end_with_command);
    syntax.flag(supervise::kLeaseGroup, "exec",
                "replace berth by COMMAND, so that no parent process stays; if COMMAND closes "
                "files that it did not open, the lease ends",
                options_.exec);
    add_fields(syntax, RequestPart::job, supervise::kLeaseGroup, options_);
    syntax.flag(supervise::kLeaseGroup, "requeue",
                "with --yield: if the job has given way, wait and start it again", options_.requeue);
    syntax.flag(supervise::kLeaseGroup, "verbose",
                "say which GPUs it got, even if standard error is no terminal", options_.verbose, 'v');
    jobs::add_notify_options(syntax, supervise::kLeaseGroup, wish_);
    syntax.flag(supervise::kLeaseGroup, "quiet", "do not say which GPUs it got", options_.quiet, 'q');
    add_far_options(syntax, far_, "on the first host that has the GPUs, through ssh");
    syntax.option(
        command::kAnywhereGroup, "on", "SYSTEM", "slurm: give the request to Slurm instead, by srun",
        command::into(on_slurm_, [](std::string_view) -> Result<bool> { return true; }), 0, {"slurm"});
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty())
      return fail(ErrorCode::usage, "run which command? berth run [OPTIONS] -- COMMAND [ARG...]");
    BERTH_DO(settle(options_));
    BERTH_DO(check(wish_));
    if (options_.exec && options_.time_s)
      return fail(ErrorCode::usage,
                  "--time and --exec exclude each other: with --exec no process could end the command");
    if (options_.exec && !wish_.targets.empty())
      return fail(ErrorCode::usage,
                  "--notify and --exec exclude each other: with --exec no process stays that could tell");
    if (options_.exec && options_.yield_s)
      return fail(ErrorCode::usage,
                  "--yield and --exec exclude each other: with --exec no process could end the command");
    if (options_.requeue && !options_.yield_s)
      return fail(ErrorCode::usage, "--requeue is for jobs that yield: add --yield");
    options_.command = words;
    if (on_slurm_) {
      if (!wish_.targets.empty())
        return fail(ErrorCode::usage, "--on slurm excludes --notify: srun takes the place of berth");
      return supervise::run_on_slurm(environment, options_, far_);
    }
    BERTH_DO(settle(far_));
    tell_others(words);
    if (far_.hosts.anywhere) return on_another_host();
    BERTH_LET(const auto first_look, supervise::time_of_first_look());
    options_.first_look = first_look;
    BERTH_LET(const auto status, run_leased(environment, options_));
    return command::Output{.status = status};
  }

 private:
  Result<command::Output> on_another_host() {
    if (options_.exec) return fail(ErrorCode::usage, "--exec and --anywhere exclude each other");
    if (options_.requeue)
      return fail(ErrorCode::usage,
                  "--requeue and --anywhere exclude each other: start the command again yourself");
    auto status = hosts::run_anywhere({options_, far_});
    if (!status && tell_of_loss_) tell_of_loss_(status.error().message);
    if (!status) return std::unexpected(std::move(status).error());
    return command::Output{.status = *status};
  }

  void tell_others(const std::vector<std::string>& words) {
    if (wish_.targets.empty()) return;
    const auto tell_of = [this, subject = view::short_command(fmt::format("{}", fmt::join(words, " ")))](
                             NoticeEvent event, std::string what, int exit_status = 0,
                             std::string used = {}) {
      jobs::send_notices(wish_, {event, "", "", subject, std::move(what), exit_status, std::move(used)},
                         command::own_environment(), nullptr);
    };
    supervise::RunHooks& hooks = options_.hooks;
    hooks.before_start = [tell_of](const leasing::HeldLease& lease) -> Result<void> {
      tell_of(NoticeEvent::start, "started on GPU " + lease.labels());
      return {};
    };
    hooks.before_yes = [this, tell_of](const std::vector<std::string>& devices) -> Result<void> {
      tell_of(NoticeEvent::start, fmt::format("started on GPU {}", fmt::join(devices, ",")));
      tell_of_loss_ = [tell_of](const std::string& why) { tell_of(NoticeEvent::fail, why, 1); };
      return {};
    };
    hooks.time_is_short = [tell_of](std::int64_t left_s) {
      tell_of(NoticeEvent::time, jobs::time_in_words(left_s));
    };
    hooks.overruns = [tell_of](const std::string& how) { tell_of(NoticeEvent::share, how); };
    hooks.left_behind = [tell_of](const std::string& processes) {
      tell_of(NoticeEvent::left,
              fmt::format("has ended, and processes that it started still hold its lease: {}", processes));
    };
    hooks.starts_again = [this](const RunEnd& end) {
      return again(end, {.requeue = options_.requeue}) != Again::no;
    };
    hooks.after_end = [tell_of, starts_again = hooks.starts_again](const RunEnd& end,
                                                                   const std::optional<Receipt>& receipt) {
      if (starts_again(end)) return;
      TaskStanding standing;
      standing.phase = TaskPhase::ended;
      set_end(standing, end.process);
      const std::string used = receipt ? view::receipt_sentence(*receipt) : "";
      if (const auto told = end_notice({standing}))
        tell_of(told->event, told->words, told->exit_status, used);
    };
  }

  supervise::RunOptions options_;
  NoticeWish wish_;
  command::FarOptions far_;
  bool on_slurm_ = false;
  std::function<void(const std::string& why)> tell_of_loss_;  ///< of the host on which the command runs
};

}  // namespace

BERTH_COMMAND(make_run, RunCommand);

namespace {

constexpr std::string_view kShellAbout =
    "Works as `berth run` with your shell ($SHELL, or your login shell). The lease ends when the "
    "shell and everything that it has started have ended. What stays (ssh-agent, tmux, nohup) keeps "
    "the GPU, so start it before. BERTH_PROMPT holds a text like \"(GPU 3) \" for the prompt; in "
    "~/.bashrc:\n"
    "\n"
    "    PS1=\"$BERTH_PROMPT$PS1\"\n"
    "\n"
    "    berth shell -n 2 --time 4h";

class ShellCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kShellAbout;
    add_lease_options(syntax, options_);
    add_anywhere_options(syntax, hosts_, "your shell on the first host that has the GPUs, through ssh");
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(options_));
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
