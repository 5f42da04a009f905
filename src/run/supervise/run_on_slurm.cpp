#include "berth/supervise/run_on_slurm.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "berth/slurm/srun.h"
#include "berth/sys/system_error.h"

namespace berth::supervise {
namespace {

Result<void> check_run(const RunOptions& options, const command::FarOptions& far) {
  if (far.hosts.anywhere || !far.hosts.hosts.empty() || !far.near.empty())
    return fail(ErrorCode::usage,
                "--on slurm excludes --anywhere, --hosts and --near: Slurm has nodes of its own. --host and "
                "--not-host name them");
  if (options.requeue || options.exec)
    return fail(ErrorCode::usage, "--on slurm excludes --requeue and --exec: srun takes the place of berth");
  const auto has_word = [](const std::string& word) {
    return word.contains("{ids}") || word.contains("{uuids}");
  };
  if (std::ranges::any_of(options.command, has_word))
    return fail(ErrorCode::usage,
                "which GPUs it gets is known on the node only: let COMMAND read CUDA_VISIBLE_DEVICES instead "
                "of {ids} and {uuids}");
  return {};
}

}  // namespace

Result<command::Output> run_on_slurm(command::Environment& environment, const RunOptions& options,
                                     const command::FarOptions& far) {
  BERTH_DO(check_run(options, far));
  const LeaseOptions& lease = options.lease;
  BERTH_LET(const auto wait_s, wait_that_is_said(lease, std::nullopt));
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  BERTH_LET(auto words, srun_options({lease.request.request, wait_s, lease.note, far.hosts.only,
                                      far.hosts.without, far.folder, far.passed_variables, on_terminal}));
  words.insert(words.begin(), "srun");
  if (options.quiet) words.emplace_back("--quiet");
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  environment.end_probe();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  if (errno == ENOENT)
    return fail(ErrorCode::failure,
                "there is no srun on PATH: --on slurm is for machines on which Slurm takes jobs");
  return sys::fail_errno("starting srun");
}

}  // namespace berth::supervise
