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
std::unique_ptr<command::Command> make_sampler();
std::unique_ptr<command::Command> make_until_used();
}  // namespace berth::supervise

namespace berth::cli {

// Each stands at the end of its command's file. They are declared here alone, so that a new command
// compiles its own file and this one.
std::unique_ptr<command::Command> make_list();
std::unique_ptr<command::Command> make_top();
std::unique_ptr<command::Command> make_timeline();
std::unique_ptr<command::Command> make_queue();
std::unique_ptr<command::Command> make_release();
std::unique_ptr<command::Command> make_extend();
std::unique_ptr<command::Command> make_edit();
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
std::unique_ptr<command::Command> make_attach();
std::unique_ptr<command::Command> make_retry();
std::unique_ptr<command::Command> make_forget();
std::unique_ptr<command::Command> make_receipt();
std::unique_ptr<command::Command> make_shell();
std::unique_ptr<command::Command> make_claim();
std::unique_ptr<command::Command> make_exclude();
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

using enum CommandGroup;
constexpr bool kFirst = true;

constexpr auto kRows = std::to_array<Row>({
    {"list", "ls", "show the GPUs, who has them, and until when", {look, kFirst}, true, make_list},
    {"why", "", "explain for every GPU why it would be granted or not", {look, kFirst}, true, make_why},
    {"timeline", "", "show who had, has and will have each GPU, as hours", {look}, true, make_timeline},
    {"queue", "", "show who waits, in which place, and for what", {look, kFirst}, true, make_queue},
    {"top",
     "",
     "watch GPUs, leases, queue and your jobs on a live screen",
     {look, kFirst},
     true,
     make_top,
     true},
    {"pick", "", "print which GPUs a job should use, and hold nothing", {look}, true, make_pick},
    {"usage", "", "show who had how many GPU-hours, leased and used", {look}, false, make_usage},
    {"verify", "", "check that the job of a lease keeps to its GPUs", {look}, true, make_verify},
    {"simulate", "", "replay jobs, and say who would wait how long", {look}, true, make_simulate},
    {"run", "", "lease GPUs for a command, and run it", {run_now, kFirst}, true, make_run},
    {"shell", "", "lease GPUs for a shell, and start it", {run_now, kFirst}, true, make_shell},
    {"release", "", "end a lease of yours", {run_now, kFirst}, false, make_release},
    {"claim", "", "lease GPUs for the shell or notebook that calls it", {run_now}, true, make_claim},
    {"adopt", "", "lease the GPUs that a process of yours already uses", {run_now}, true, make_adopt},
    {"extend", "", "make a lease of yours last longer", {run_now}, false, make_extend},
    {"mcp", "", "let a program, such as a coding agent, run jobs", {run_now}, false, make_mcp},
    {"submit",
     "",
     "store a command as a job: it runs when its GPUs are free",
     {run_later, kFirst},
     true,
     make_submit},
    {"jobs", "", "show what became of the jobs that you submitted", {run_later, kFirst}, false, make_jobs},
    {"log", "", "print what a job has printed", {run_later, kFirst}, false, make_log},
    {"cancel",
     "",
     "take a request of yours out of the queue, or end a job",
     {run_later, kFirst},
     false,
     make_cancel},
    {"attach", "", "connect your terminal to that of a job", {run_later}, false, make_attach},
    {"wait", "", "wait for jobs, or until GPUs are free", {run_later}, false, make_wait},
    {"each", "", "run the commands of a file; again: only what is left", {run_later}, false, make_each},
    {"sbatch", "", "submit a script that was written for Slurm", {run_later}, true, make_sbatch},
    {"receipt",
     "",
     "show what your runs had and used, and how long they took",
     {run_later},
     false,
     make_receipt},
    {"edit", "", "hold a waiting job of yours, move it, or change its request", {run_later}, true, make_edit},
    {"retry", "", "run jobs again that failed or were cut off", {run_later}, false, make_retry},
    {"forget", "", "remove jobs that are over, and what they printed", {run_later}, false, make_forget},
    {"serve",
     "",
     "show this machine over HTTP: a page, JSON, events, metrics",
     {machines},
     true,
     make_serve,
     true},
    {"store", "", "look at the store of a lab, or make its users", {machines}, false, make_store},
    {"doctor",
     "",
     "check driver, lease directory and settings; say how to mend them",
     {administer, kFirst},
     true,
     make_doctor},
    {"exclude", "", "take a GPU out, with a reason", {administer}, true, make_exclude},
    {"include", "", "stop passing over a GPU on which runs have died", {administer}, true, make_include},
    {"init", "", "make the lease directory that all users share (root)", {administer}, true, make_init},
    {"prolog",
     "",
     "lease what Slurm has allotted to a job (for its Prolog)",
     {administer},
     false,
     make_prolog},
    {"epilog", "", "end that lease (for its Epilog)", {administer}, false, make_epilog},
    {"completion", "", "print the completion script for a shell", {administer}, false, make_completion},
    {"version", "", "print the version", {administer}, false, make_version},
    {"help", "", "explain a command", {administer}, false, make_help},
    {"__probe", "", "", {}, false, make_probe},
    {"__lease", "", "", {}, true, make_lease_helper},
    {"__until-used", "", "", {}, false, supervise::make_until_used},
    {"__cuda-order", "", "", {}, false, make_cuda_order},
    {"__cuda-trial", "", "", {}, false, make_cuda_trial},
    {"__envoy", "", "", {}, true, hosts::make_envoy},
    {"__terminal", "", "", {}, false, hosts::make_terminal_keeper},
    {"__conduct", "", "", {}, true, supervise::make_compliance},
    {"__sample", "", "", {}, false, supervise::make_sampler},
    {"__leases", "", "", {}, false, make_leases},
    {"__jobs", "", "", {}, false, jobs::make_job_runner},
    {"__job", "", "", {}, true, jobs::make_task_run},
    {"__tasks", "", "", {}, false, make_task_words},
    {"__notify", "", "", {}, false, jobs::make_notify},
    {"__manual", "", "", {}, false, make_manual},
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
