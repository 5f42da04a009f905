#include <unistd.h>

#include <algorithm>
#include <set>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/lease/session.h"
#include "berth/supervise/claim_keeper.h"
#include "berth/supervise/compliance_check.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/process.h"
#include "berth/verdict/verdict.h"
#include "berth/view/answers_json.h"
#include "berth/view/doctor.h"
#include "berth/view/verdict_text.h"

namespace berth::cli {
namespace {

constexpr std::string_view kAdoptAbout =
    "Leases the GPUs on which a process of yours, or a process that it started, already computes, so "
    "that nobody else gets them. It refuses if somebody else computes there too. The lease ends with "
    "the process. A keeper holds the lease; killing the keeper ends it.\n"
    "\n"
    "    berth adopt 4711         # the PID that nvidia-smi shows";

// The process and all that it has started.
std::set<std::uint32_t> tree_of(pid_t pid) {
  std::set<std::uint32_t> tree{static_cast<std::uint32_t>(pid)};
  for (const UniqueProcess& one : sys::ProcessTree().below(pid)) tree.insert(one.pid);
  return tree;
}

class Adopt : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "PID";
    syntax.about = kAdoptAbout;
    syntax.add(supervise::note_option("Options", options_.note));
    syntax.flag("Options", "json", "as JSON (docs/schema/claim.json)", json_);
    syntax.add(command::source_option(options_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "adopt which process? berth adopt PID");
    const auto number = number_at_least(words.front(), 1);
    if (!number) return std::unexpected(context(number.error(), words.front()));
    pid_ = static_cast<pid_t>(*number);
    return supervise::leave_keeper(environment, pid_, [&]() -> Result<supervise::KeptLease> {
      // The keeper watches that process by now: asked before, its number could have become
      // another's.
      BERTH_DO(check_owner());
      return take(environment);
    });
  }

 private:
  Result<void> check_owner() const {
    const auto owner = sys::process_owner(pid_);
    if (!owner) return fail(ErrorCode::failure, "there is no process {}", pid_);
    if (*owner == ::geteuid()) return {};
    return fail(ErrorCode::failure, "process {} is of {}, and a lease would be yours: only {} can adopt it",
                pid_, sys::user_name(*owner), sys::user_name(*owner));
  }

  Result<supervise::KeptLease> take(command::Environment& environment) {
    options_.mask = MaskUse::ignore;  // where it computes is settled
    options_.no_wait = true;
    options_.adopts_running_process = true;
    const std::set<std::uint32_t> tree = tree_of(pid_);
    BERTH_LET(auto session, open_session(environment, options_));
    BERTH_DO(ask_for_what_it_uses(session, tree));
    session.set_aside(tree);
    leasing::TicketWords words{sys::process_command(pid_), options_.note, "what it uses"};
    words.kept = true;
    words.job = static_cast<std::uint32_t>(pid_);
    auto lease = take_lease(session, options_, words);
    environment.end_probe();
    if (!lease) return std::unexpected(lease.error());
    command::Output answer = answer_for(session.domain(), *lease);
    supervise::KeptLease kept{std::move(*lease), std::move(answer)};
    BERTH_LET(const auto times, receipts::sampling_times(false));
    kept.sampling = std::make_unique<receipts::RunSampling>(kept.lease.ticket(), session.domain(),
                                                            options_.source, times);
    return kept;
  }

  // The devices that it computes on, now or not at all. Error: there are none; it has a lease.
  Result<void> ask_for_what_it_uses(const leasing::Session& session, const std::set<std::uint32_t>& tree) {
    Request& request = options_;
    BERTH_LET(const auto world, session.look(request));
    for (const auto& [pid, lease] : world.facts.process_leases) {
      if (tree.contains(pid))
        return fail(ErrorCode::failure, "process {} has the lease {} already", pid,
                    short_name(world.ledger, lease));
    }
    for (const Device& device : world.facts.snapshot.devices) {
      // The driver may list what is on an instance for its GPU, too.
      const bool split = !device.mig && device.mig_enabled.value_or(false);
      const bool here =
          !split && device.processes && std::ranges::any_of(*device.processes, [&](const Process& process) {
            return process.kind != ProcessKind::graphics && tree.contains(process.pid);
          });
      if (here) request.devices.push_back(device.uuid);
    }
    if (request.devices.empty())
      return fail(ErrorCode::failure,
                  "neither process {} ({}) nor a process that it started computes on a GPU", pid_,
                  printable(sys::process_command(pid_)));
    request.count = static_cast<unsigned>(request.devices.size());
    return {};
  }

  command::Output answer_for(const leasing::Domain& domain, const leasing::HeldLease& lease) const {
    const auto variables = supervise::lease_environment(domain, lease, options_).variables;
    if (json_)
      return command::Output{
          .out =
              view::claim_json({lease.ticket(), lease.devices(), variables,
                                said_end_at_s(lease.ticket(), lease.world().facts.booted_at_s).value_or(0)})};
    return command::Output{.out = fmt::format("lease {}: GPU {} for process {} ({}) until it ends\n",
                                              lease.short_name(), lease.labels(), pid_,
                                              view::short_command(sys::process_command(pid_)))};
  }

  supervise::LeaseOptions options_;
  bool json_ = false;
  pid_t pid_ = 0;
};

}  // namespace

BERTH_COMMAND(make_adopt, Adopt);

namespace {

constexpr std::string_view kVerifyAbout =
    "Looks once whether the job of a lease computes on the GPUs of the lease and on no others, and "
    "says which process is on which GPU. Status 0: so it is. Status 1: it computes on a GPU that it "
    "did not lease, or Berth cannot tell. Status 75: it computes on no GPU at this moment.\n"
    "\n"
    "The last digits of an id, as `berth list -l` shows them, are enough. Without ID: the lease that "
    "this shell is in.\n"
    "\n"
    "    berth verify a1b2c3\n"
    "    berth verify             # in a shell that is in a lease";

int status_of(Compliance compliance) {
  switch (compliance) {
    case Compliance::keeps:
      return 0;
    case Compliance::idle:
      return outcome_of(ErrorCode::not_now).exit_status;
    case Compliance::strays:
    case Compliance::unknown:
      break;
  }
  return outcome_of(ErrorCode::failure).exit_status;
}

class Verify : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[ID]";
    syntax.words_command = "__leases";
    syntax.about = kVerifyAbout;
    syntax.flag("Options", "json", "as JSON (docs/schema/verify.json)", json_);
    syntax.add(command::source_option(source_));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    BERTH_LET(const auto look, supervise::look_at_compliance(environment, words, source_));
    const ComplianceReport report = compliance_of(look.lease, look.world.ledger, look.world.facts);
    const view::JobCompliance job{look.lease, look.name, look.world.facts.snapshot, report,
                                  look.world.assumed};
    return command::Output{
        .out = json_ ? view::verify_json(job) : view::compliance_text(job, command::Environment::style_of(1)),
        .err = command::as_lines(leasing::notes_on(look.world)),
        .status = status_of(report.compliance)};
  }

 private:
  bool json_ = false;
  source::SourceKind source_ = source::SourceKind::kAutomatic;
};

}  // namespace

BERTH_COMMAND(make_verify, Verify);

}  // namespace berth::cli
