#include "berth/cli/simulate.h"

#include <unistd.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/queue/schedule.h"
#include "berth/simulate/workload.h"
#include "berth/site/site_file.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/clock.h"
#include "berth/view/replay.h"

namespace berth::cli {
namespace {

constexpr std::string_view kSimulateAbout =
    "Replays jobs that were, or that may come, through the function that decides in line who starts when, "
    "and says how long they wait: all, by size, and by user. With other rules given it compares them with "
    "those that hold: who starts sooner, and who later. It runs nothing and leases nothing.\n"
    "\n"
    "    berth simulate --jobs jobs.csv\n"
    "    berth simulate --jobs jobs.csv --assumed-time 8h\n"
    "    berth simulate --jobs jobs.csv --order fair\n"
    "    berth simulate --jobs jobs.csv --expect limits\n"
    "    berth simulate --jobs jobs.csv --devices 16 --no-backfill --json\n"
    "    berth simulate --from-history --since 30d --order fair\n"
    "\n"
    "The first line of FILE is arrival,devices,duration,time,user,program: when the job came (seconds, or a "
    "date like 2026-11-20 14:02:05), how many GPUs it wants, how long it takes, how long it says that it "
    "takes at most (may be empty), whose it is, and what it runs. The lines after it are sorted by arrival.\n"
    "\n"
    "--from-history takes the leases that the agent of this machine recorded (berth serve) instead of a "
    "file, and says beside the rules how long people did wait.";

constexpr std::string_view kOfHistory = "History";
constexpr std::string_view kOtherRules = "Other rules, to compare with";
constexpr std::size_t kLargestJobsFile = std::size_t{64} << 20;
constexpr std::size_t kLongestFault = 400;  // columns: a field of the file may be of any length
constexpr unsigned kMostDevices = 4096;
constexpr Moment kMostAssumed = 3650LL * 86'400;

/// How far it is, on a terminal, for whoever waits longer than a moment.
class ProgressBar {
 public:
  explicit ProgressBar(std::size_t jobs) : jobs_(jobs), shows_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressBar() {
    if (shown_) command::mention(view::kClearLine);
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void tell(std::size_t started) {
    if (!shows_ || sys::monotonic_now() < next_) return;
    next_ = sys::monotonic_now() + kBarEvery;
    constexpr std::size_t kCells = 40;
    const std::size_t full = kCells * started / jobs_;
    const std::string bar =
        fmt::format("[{:=<{}}{:{}}] {} of {}", "", full, "", kCells - full, started, jobs_);
    command::mention(fmt::format("{}{}", view::kClearLine,
                                 view::cut(bar, command::Environment::style_of(STDERR_FILENO).width - 1)));
    shown_ = true;
  }

 private:
  static constexpr std::chrono::milliseconds kBarEvery{200};
  std::size_t jobs_;
  bool shows_;
  bool shown_ = false;
  std::chrono::nanoseconds next_ = sys::monotonic_now() + kBarEvery;
};

Result<unsigned> devices_from_text(std::string_view value) {
  BERTH_LET(const auto devices, number_at_least(value, 1));
  if (devices > kMostDevices) return fail(ErrorCode::usage, "must be at most {}", kMostDevices);
  return devices;
}

Result<Moment> assumed_from_text(std::string_view value) {
  BERTH_LET(const auto seconds, seconds_from_text(value));
  if (seconds < 1 || seconds > kMostAssumed) return fail(ErrorCode::usage, "must be from 1s to 3650d");
  return seconds;
}

view::WhatIf::Under under(const QueueRules& rules, const Workload& workload) {
  ProgressBar bar(workload.jobs.size());
  return {rules, replay(workload, rules, [&](std::size_t started) { bar.tell(started); })};
}

Result<QueueRules> rules_of_the_site() {
  BERTH_LET(auto site, site::read_site_files());
  store::apply_order_of_machine(site.policy, store::choose_lease_directory().path);
  return site.policy.queue;
}

QueueRules rules_as_given(const SimulateOptions& options, const QueueRules& present) {
  return {.assumed_s = options.assumed_s.value_or(present.assumed_s),
          .backfill = options.backfill || (present.backfill && !options.no_backfill),
          .order = options.order.value_or(present.order),
          .expect = options.expect.value_or(present.expect),
          .longest_wait_s = options.longest_wait_s.value_or(present.longest_wait_s)};
}

class Simulate : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax = simulate_syntax(options_); }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(check_options(options_));
    if (options_.from_history) {
      environment.end_probe();
      return std::unexpected(
          command::become_berth_serve(command::kSimulateWord, environment.words().subspan(1)));
    }
    BERTH_LET(const auto devices, how_many_devices(environment));
    const auto text = command::text_of_input(options_.jobs, kLargestJobsFile);
    if (!text) return std::unexpected(text.error());
    const std::string name = options_.jobs == command::kInput ? "standard input" : options_.jobs;
    const auto workload = workload_from_csv(*text, name, devices);
    if (!workload) {
      const std::string fault = printable(workload.error().message);
      return fail(workload.error().code, view::cut(fault, kLongestFault));
    }
    return simulated(options_, *workload, nullptr);
  }

 private:
  /// Without a number: those that could ever be granted here.
  Result<std::size_t> how_many_devices(command::Environment& environment) {
    if (options_.devices) {
      environment.end_probe();
      return *options_.devices;
    }
    command::RequestOptions all;
    all.source = options_.source;
    all.mask = MaskUse::ignore;
    BERTH_LET(const auto session, open_session(environment, all));
    BERTH_LET(const auto found, session.why(all));
    if (found.possible == 0)
      return fail(ErrorCode::impossible,
                  "no GPU can ever be granted here; say how many there are: --devices N");
    return found.possible;
  }

  SimulateOptions options_;
};

}  // namespace

command::Syntax simulate_syntax(SimulateOptions& options) {
  command::Syntax syntax;
  syntax.about = kSimulateAbout;
  using command::into;
  syntax.text("Jobs", "jobs", "FILE", "the jobs, as CSV; - for standard input", options.jobs);
  syntax.flag("Jobs", "from-history", "the jobs that ran here, as the agent recorded them",
              options.from_history);
  syntax.option("Jobs", "devices", "N",
                "how many GPUs there are; by default those of this machine or history",
                into(options.devices, devices_from_text));
  syntax.option(kOtherRules, "assumed-time", "TIME",
                "assume that a job without a time limit lasts this long: 1h, 2d",
                into(options.assumed_s, assumed_from_text));
  static const std::string kOrderHelp = fmt::format("whose job starts first: {}", orders_in_words());
  syntax.option(kOtherRules, "order", "ORDER", kOrderHelp, into(options.order, queue_order_from_text));
  syntax.option(
      kOtherRules, "expect", "TIMES",
      "a job comes first that has waited longer in relation to how long it is expected to last, by: limits "
      "(the times that jobs say), runs (also by earlier jobs of the same program), none (this order is off)",
      into(options.expect, expect_from_text));
  syntax.option(
      kOtherRules, "longest-wait", "TIME",
      "with --expect: the job that came first starts first once it has waited so long; 21d by default",
      into(options.longest_wait_s, assumed_from_text));
  syntax.flag(kOtherRules, "backfill", "later jobs may start before an earlier job that they do not delay",
              options.backfill);
  syntax.flag(kOtherRules, "no-backfill", "no job starts before an earlier one", options.no_backfill);
  syntax.flag("Output", "json", "as JSON (docs/schema/simulate.json)", options.json);
  syntax.text(kOfHistory, "since", "TIME", "from so long ago: 24h, 7d, 30d (default)", options.since);
  syntax.text(kOfHistory, "url", "URL", "ask this agent: https://node01:8420", options.asking.url);
  syntax.text(kOfHistory, "file", "FILE", "read this history; no agent may have it", options.file);
  add_peer_options(syntax, kOfHistory, options.asking);
  syntax.add(command::source_option(options.source));
  return syntax;
}

Result<void> check_options(const SimulateOptions& options) {
  if (options.backfill && options.no_backfill)
    return fail(ErrorCode::usage, "--backfill and --no-backfill are two lines: compare with one of them");
  if (options.from_history && !options.jobs.empty())
    return fail(ErrorCode::usage, "--jobs and --from-history contradict each other: give one of them");
  if (options.from_history) return {};
  if (options.jobs.empty())
    return fail(ErrorCode::usage, "which jobs? Name a file with --jobs FILE, or add --from-history");
  if (!options.since.empty() || !options.asking.url.empty() || !options.file.empty())
    return fail(ErrorCode::usage, "--since, --url and --file are for --from-history; add it");
  return {};
}

Result<command::Output> simulated(const SimulateOptions& options, const Workload& workload,
                                  const RecordedWorkload* recorded) {
  BERTH_LET(const QueueRules present, rules_of_the_site());
  const QueueRules other = rules_as_given(options, present);
  view::WhatIf answer{.workload = workload, .present = under(present, workload), .recorded = recorded};
  if (other != present) answer.other = under(other, workload);
  return command::Output{
      .out = options.json ? view::what_if_json(answer, view::Layout::lines)
                          : view::what_if_table(answer, command::Environment::style_of(STDOUT_FILENO))};
}

BERTH_COMMAND(make_simulate, Simulate);

}  // namespace berth::cli
