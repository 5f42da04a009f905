#include <algorithm>
#include <array>

#include "berth/cli/commands.h"

// Programs of a feature, which it starts itself.
namespace berth::hosts {
command::MakeCommand make_terminal_keeper, make_envoy;
}  // namespace berth::hosts
namespace berth::jobs {
command::MakeCommand make_notify, make_task_run, make_job_runner;
}  // namespace berth::jobs
namespace berth::receipts {
command::MakeCommand make_sampler;
}  // namespace berth::receipts
namespace berth::supervise {
command::MakeCommand make_compliance, make_until_used;
}  // namespace berth::supervise

namespace berth::cli {

// Each stands at the end of its command's file. They are declared here alone, so that a new command
// compiles its own file and this one.
command::MakeCommand make_list, make_top, make_timeline, make_queue, make_release, make_extend, make_edit,
    make_cancel, make_verify, make_serve, make_store, make_usage, make_simulate, make_pick, make_why,
    make_run, make_submit, make_sbatch, make_each, make_jobs, make_log, make_wait, make_attach, make_retry,
    make_forget, make_receipt, make_shell, make_claim, make_exclude, make_include, make_init, make_adopt,
    make_prolog, make_epilog, make_doctor, make_completion, make_version, make_help, make_probe,
    make_lease_helper, make_cuda_order, make_cuda_trial, make_leases, make_task_words, make_manual, make_mcp;

namespace {

using enum CommandGroup;
constexpr bool kFirst = true;

constexpr auto kRows = std::to_array<Row>({
    {"list", "show the GPUs, who has them, and until when", {look, kFirst}, true, make_list, false, "ls"},
    {"why", "explain for every GPU why it would be granted or not", {look, kFirst}, true, make_why},
    {"timeline", "show who had, has and will have each GPU, as hours", {look}, true, make_timeline},
    {"queue", "show who waits, in which place, and for what", {look, kFirst}, true, make_queue},
    {"top", "watch GPUs, leases, queue and your jobs on a live screen", {look, kFirst}, true, make_top, true},
    {"pick", "print which GPUs a job should use, and hold nothing", {look}, true, make_pick},
    {"usage", "show who had how many GPU-hours, leased and used", {look}, false, make_usage},
    {"verify", "check that the job of a lease keeps to its GPUs", {look}, true, make_verify},
    {"simulate", "replay jobs, and say who would wait how long", {look}, true, make_simulate},
    {"run", "lease GPUs for a command, and run it", {run_now, kFirst}, true, make_run},
    {"shell", "lease GPUs for a shell, and start it", {run_now, kFirst}, true, make_shell},
    {"release", "end a lease of yours", {run_now, kFirst}, false, make_release},
    {"claim", "lease GPUs for the shell or notebook that calls it", {run_now}, true, make_claim},
    {"adopt", "lease the GPUs that a process of yours already uses", {run_now}, true, make_adopt},
    {"extend", "make a lease of yours last longer", {run_now}, false, make_extend},
    {"mcp", "let a program, such as a coding agent, run jobs", {run_now}, false, make_mcp},
    {"submit",
     "store a command as a job: it runs when its GPUs are free",
     {run_later, kFirst},
     true,
     make_submit},
    {"jobs", "show what became of the jobs that you submitted", {run_later, kFirst}, false, make_jobs},
    {"log", "print what a job has printed", {run_later, kFirst}, false, make_log},
    {"cancel",
     "take a request of yours out of the queue, or end a job",
     {run_later, kFirst},
     false,
     make_cancel},
    {"attach", "connect your terminal to that of a job", {run_later}, false, make_attach},
    {"wait", "wait for jobs, or until GPUs are free", {run_later}, false, make_wait},
    {"each", "run the commands of a file; again: only what is left", {run_later}, false, make_each},
    {"sbatch", "submit a script that was written for Slurm", {run_later}, true, make_sbatch},
    {"receipt", "show what your runs had and used, and how long they took", {run_later}, false, make_receipt},
    {"edit", "hold a waiting job of yours, move it, or change its request", {run_later}, true, make_edit},
    {"retry", "run jobs again that failed or were cut off", {run_later}, false, make_retry},
    {"forget", "remove jobs that are over, and what they printed", {run_later}, false, make_forget},
    {"serve",
     "show this machine over HTTP: a page, JSON, events, metrics",
     {machines},
     true,
     make_serve,
     true},
    {"store", "look at the store of a lab, and check it", {machines}, false, make_store},
    {"doctor",
     "check driver, lease directory and settings; say how to mend them",
     {administer, kFirst},
     true,
     make_doctor},
    {"exclude", "take a GPU out, with a reason", {administer}, true, make_exclude},
    {"include", "stop passing over a GPU on which runs have died", {administer}, true, make_include},
    {"init", "make the lease directory that all users share (root)", {administer}, true, make_init},
    {"prolog", "lease what Slurm has allotted to a job (for its Prolog)", {administer}, false, make_prolog},
    {"epilog", "end that lease (for its Epilog)", {administer}, false, make_epilog},
    {"completion", "print the completion script for a shell", {administer}, false, make_completion},
    {"version", "print the version", {administer}, false, make_version},
    {"help", "explain a command", {administer}, false, make_help},
    {"__probe", "", {}, false, make_probe},
    {"__lease", "", {}, true, make_lease_helper},
    {"__until-used", "", {}, false, supervise::make_until_used},
    {"__cuda-order", "", {}, false, make_cuda_order},
    {"__cuda-trial", "", {}, false, make_cuda_trial},
    {"__envoy", "", {}, true, hosts::make_envoy},
    {"__terminal", "", {}, false, hosts::make_terminal_keeper},
    {"__compliance", "", {}, true, supervise::make_compliance},
    {"__sample", "", {}, false, receipts::make_sampler},
    {"__leases", "", {}, false, make_leases},
    {"__jobs", "", {}, false, jobs::make_job_runner},
    {"__job", "", {}, true, jobs::make_task_run},
    {"__tasks", "", {}, false, make_task_words},
    {"__notify", "", {}, false, jobs::make_notify},
    {"__manual", "", {}, false, make_manual},
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
