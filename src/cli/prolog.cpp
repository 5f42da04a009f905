// The commands that slurmd runs for each job (docs/admin.md). Slurm has decided already which job
// has the GPUs: Berth takes a lease that says so, and ends it.

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "berth/command/command.h"
#include "berth/command/release.h"
#include "berth/command/shared_options.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/request/request.h"
#include "berth/site/site_file.h"
#include "berth/slurm/prolog_job.h"
#include "berth/store/lease_directory.h"
#include "berth/supervise/claim_keeper.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"
#include "berth/view/refusal.h"

namespace berth::cli {
namespace {

constexpr std::string_view kSlurmGroup = "Slurm";

constexpr std::string_view kPrologAbout =
    "For the Prolog of Slurm, on a machine whose GPUs Slurm and Berth both give out. Leases the GPUs "
    "that Slurm has allotted to the job, in the name of its user, until `berth epilog`. While somebody "
    "else computes on one of them or has leased it, it waits, and the job with it. With --wait it gives "
    "up after that time and fails: Slurm then drains the node and holds the job.\n"
    "\n"
    "A command of Berth inside the job sees the GPUs of the job and no others. Without GPUs, the job needs "
    "no lease, and this does nothing. Name a script as Prolog in slurm.conf:\n"
    "\n"
    "    #!/bin/sh\n"
    "    exec /usr/bin/berth prolog\n"
    "\n"
    "Slurm counts its GPUs in the order of gres.conf. Where these are not all GPUs of the machine, --gpus "
    "names them in that order.";

constexpr std::string_view kEpilogAbout =
    "For the Epilog of Slurm: ends the lease that `berth prolog` has taken for the job. Without such a "
    "lease it does nothing. Name a script as Epilog in slurm.conf:\n"
    "\n"
    "    #!/bin/sh\n"
    "    exec /usr/bin/berth epilog";

// slurmd does not wait for long.
constexpr std::chrono::seconds kKeeperEndsWithin{10};

Result<SlurmJob> slurm_job_here() {
  return slurm_job_from([](std::string_view name) { return sys::variable(std::string(name).c_str()); });
}

// Prolog and epilog act for the whole machine, although Slurm gives them the variables of a job.
Result<leasing::Domain> machine_here() {
  ::unsetenv(kSlurmJobVariable);
  BERTH_LET(auto domain, command::find_domain());
  return leasing::machine_around(std::move(domain));
}

Result<void> end_leases_of(const leasing::Domain& domain, const SlurmJob& job) {
  BERTH_LET(const auto books, domain.store->look());
  for (const Ticket& ticket : books.ledger.tickets) {
    // A ticket of somebody else may say anything.
    if (ticket.slurm_job != job.number || ticket.uid != job.uid) continue;
    BERTH_DO(command::ask_to_release(*domain.store, ticket, kKeeperEndsWithin));
  }
  return {};
}

// Slurm has rules of its own for who may have how much and when.
site::SiteFilePaths site_alone() {
  return {site::standard_site_file_paths().site, ""};
}

SitePolicy without_limits(SitePolicy policy) {
  policy.limits = {};
  policy.excluded.clear();
  policy.most_time_s.reset();
  policy.default_wait_s.reset();
  return policy;
}

class Prolog : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kPrologAbout;
    syntax.option(kSlurmGroup, "wait", "TIME", "wait at most this long (10m), then fail with status 124",
                  command::delay_into(lease_.wait_s));
    syntax.option(kSlurmGroup, "gpus", "LIST", "the GPUs that gres.conf has, in its order, if not all: 4-7",
                  command::into(listed_, selectors_from_text));
    syntax.add(command::source_option(lease_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_LET(const auto job, slurm_job_here());
    if (job.gpus.empty()) return command::Output{};
    // The owner of the lease directory could delete the leases of others.
    if (::geteuid() == 0) BERTH_DO(store::make_directory_of_root(store::choose_lease_directory()));
    BERTH_DO(sys::become_user(job.uid, job.gid));
    Request& request = lease_;
    BERTH_LET(request.devices, devices_of_slurm(job.gpus, listed_));
    request.count = static_cast<unsigned>(request.devices.size());
    BERTH_DO(check(request));
    return supervise::leave_keeper(environment, std::nullopt, [&] { return take(environment, job); });
  }

 private:
  Result<supervise::KeptLease> take(command::Environment& environment, const SlurmJob& job) const {
    BERTH_LET(auto domain, machine_here());
    // If the same job was started before and had no epilog, its leases are still there.
    BERTH_DO(end_leases_of(domain, job));
    BERTH_LET(auto files, site::read_site_files(site_alone()));
    leasing::LookOptions options;
    options.policy = without_limits(std::move(files.policy));
    const leasing::Session session(std::move(domain), environment.access(lease_.source), std::move(options));
    leasing::TicketWords words{"Slurm", fmt::format("job {}", job.number), view::request_in_words(lease_)};
    words.kept = true;
    words.slurm_job = job.number;
    auto lease = take_lease(session, lease_, words);
    environment.end_probe();
    if (!lease) return std::unexpected(lease.error());
    return supervise::KeptLease{*std::move(lease), command::Output{}};
  }

  supervise::LeaseOptions lease_;
  std::vector<std::string> listed_;
};

class Epilog : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.about = kEpilogAbout; }

  Result<command::Output> run(command::Environment&, const command::Words&) override {
    BERTH_LET(const auto job, slurm_job_here());
    BERTH_LET(const auto domain, machine_here());
    BERTH_DO(end_leases_of(domain, job));
    return command::Output{};
  }
};

}  // namespace

BERTH_COMMAND(make_prolog, Prolog);
BERTH_COMMAND(make_epilog, Epilog);

}  // namespace berth::cli
