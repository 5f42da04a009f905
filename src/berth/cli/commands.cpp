#include <algorithm>
#include <array>

#include "berth/cli/commands.h"

// Programs of a feature, which it starts itself.
namespace berth::hosts {
std::unique_ptr<command::Command> make_terminal_keeper();
std::unique_ptr<command::Command> make_envoy();
}  // namespace berth::hosts
namespace berth::jobs {
std::unique_ptr<command::Command> make_notify();
std::unique_ptr<command::Command> make_task_run();
std::unique_ptr<command::Command> make_job_runner();
}  // namespace berth::jobs
namespace berth::supervise {
std::unique_ptr<command::Command> make_compliance();
std::unique_ptr<command::Command> make_until_used();
}  // namespace berth::supervise

namespace berth::cli {

// Each stands at the end of its command's file. They are declared here alone, so that a new command compiles
// its own file and this one.
std::unique_ptr<command::Command> make_list();
std::unique_ptr<command::Command> make_top();
std::unique_ptr<command::Command> make_queue();
std::unique_ptr<command::Command> make_release();
std::unique_ptr<command::Command> make_extend();
std::unique_ptr<command::Command> make_cancel();
std::unique_ptr<command::Command> make_verify();
std::unique_ptr<command::Command> make_serve();
std::unique_ptr<command::Command> make_store();
std::unique_ptr<command::Command> make_usage();
std::unique_ptr<command::Command> make_simulate();
std::unique_ptr<command::Command> make_pick();
std::unique_ptr<command::Command> make_why();
std::unique_ptr<command::Command> make_run();
std::unique_ptr<command::Command> make_submit();
std::unique_ptr<command::Command> make_sbatch();
std::unique_ptr<command::Command> make_each();
std::unique_ptr<command::Command> make_jobs();
std::unique_ptr<command::Command> make_log();
std::unique_ptr<command::Command> make_wait();
std::unique_ptr<command::Command> make_retry();
std::unique_ptr<command::Command> make_forget();
std::unique_ptr<command::Command> make_shell();
std::unique_ptr<command::Command> make_claim();
std::unique_ptr<command::Command> make_include();
std::unique_ptr<command::Command> make_init();
std::unique_ptr<command::Command> make_adopt();
std::unique_ptr<command::Command> make_prolog();
std::unique_ptr<command::Command> make_epilog();
std::unique_ptr<command::Command> make_doctor();
std::unique_ptr<command::Command> make_completion();
std::unique_ptr<command::Command> make_version();
std::unique_ptr<command::Command> make_help();
std::unique_ptr<command::Command> make_probe();
std::unique_ptr<command::Command> make_lease_helper();
std::unique_ptr<command::Command> make_cuda_order();
std::unique_ptr<command::Command> make_cuda_trial();
std::unique_ptr<command::Command> make_leases();
std::unique_ptr<command::Command> make_task_words();
std::unique_ptr<command::Command> make_manual();
std::unique_ptr<command::Command> make_mcp();

namespace {

constexpr auto kRows = std::to_array<Row>({
    {"list", "ls", "show the GPUs, who has them, and what runs on them", true, make_list},
    {"pick", "", "print which GPUs a job should use, and hold nothing", true, make_pick},
    {"why", "", "explain for every GPU why it would be granted or not", true, make_why},
    {"run", "", "lease GPUs for a command, and run it", true, make_run},
    {"submit", "", "store a command as a job: it runs when its GPUs are free", true, make_submit},
    {"sbatch", "", "submit a script that was written for Slurm", true, make_sbatch},
    {"each", "", "run the commands of a file; again: only what is left", false, make_each},
    {"jobs", "", "show what became of the jobs that you submitted", false, make_jobs},
    {"log", "", "print what a job has printed", false, make_log},
    {"wait", "", "wait for jobs, and end as they ended", false, make_wait},
    {"retry", "", "run jobs again that failed or were cut off", false, make_retry},
    {"forget", "", "remove jobs that are over, and what they printed", false, make_forget},
    {"shell", "", "lease GPUs for a shell, and start it", true, make_shell},
    {"claim", "", "lease GPUs for the shell or notebook that calls it", true, make_claim},
    {"adopt", "", "lease the GPUs that a process of yours already uses", true, make_adopt},
    {"queue", "", "show who waits, in which place, and for what", true, make_queue},
    {"top", "", "watch GPUs, leases, queue and your jobs on a live screen", true, make_top, true},
    {"mcp", "", "let a program, such as a coding agent, run jobs", false, make_mcp},
    {"serve", "", "show this machine over HTTP: a page, JSON, events, metrics", true, make_serve, true},
    {"store", "", "look at the store of a lab, or make its users", false, make_store},
    {"usage", "", "show who had how many GPU-hours, leased and used", false, make_usage},
    {"simulate", "", "replay jobs, and say who would wait how long", true, make_simulate},
    {"release", "", "end a lease of yours", false, make_release},
    {"extend", "", "make a lease of yours last longer", false, make_extend},
    {"cancel", "", "take a request of yours out of the queue, or end a job", false, make_cancel},
    {"verify", "", "check that the job of a lease keeps to its GPUs", true, make_verify},
    {"include", "", "stop passing over a GPU on which runs have died", true, make_include},
    {"init", "", "make the lease directory that all users share (root)", true, make_init},
    {"prolog", "", "lease what Slurm has allotted to a job (for its Prolog)", false, make_prolog},
    {"epilog", "", "end that lease (for its Epilog)", false, make_epilog},
    {"doctor", "", "check driver, lease directory and settings; say how to mend them", true, make_doctor},
    {"completion", "", "print the completion script for a shell", false, make_completion},
    {"version", "", "print the version", false, make_version},
    {"help", "", "explain a command", false, make_help},
    {"__probe", "", "", false, make_probe},
    {"__lease", "", "", true, make_lease_helper},
    {"__until-used", "", "", false, supervise::make_until_used},
    {"__cuda-order", "", "", false, make_cuda_order},
    {"__cuda-trial", "", "", false, make_cuda_trial},
    {"__envoy", "", "", true, hosts::make_envoy},
    {"__terminal", "", "", false, hosts::make_terminal_keeper},
    {"__conduct", "", "", true, supervise::make_compliance},
    {"__leases", "", "", false, make_leases},
    {"__jobs", "", "", false, jobs::make_job_runner},
    {"__job", "", "", true, jobs::make_task_run},
    {"__tasks", "", "", false, make_task_words},
    {"__notify", "", "", false, jobs::make_notify},
    {"__manual", "", "", false, make_manual},
});

}  // namespace

std::span<const Row> rows() {
  return kRows;
}

const Row* find_row(std::string_view name) {
  const auto found = std::ranges::find_if(
      kRows, [&](const Row& row) { return row.name == name || (!row.alias.empty() && row.alias == name); });
  return found == kRows.end() ? nullptr : &*found;
}

}  // namespace berth::cli
