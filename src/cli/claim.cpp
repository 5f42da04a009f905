#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/jobs/send_notice.h"
#include "berth/jobs/submission.h"
#include "berth/request/request.h"
#include "berth/supervise/claim_keeper.h"
#include "berth/supervise/claim_script.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/process.h"
#include "berth/view/answers_json.h"
#include "berth/view/refusal.h"

namespace berth::cli {
namespace {

constexpr std::string_view kClaimAbout =
    "Leases GPUs for the shell or notebook that calls it, and prints the commands that set its "
    "variables:\n"
    "\n"
    "    eval \"$(berth claim -n 1)\"\n"
    "\n"
    "If it fails, eval fails with the same status. In fish: berth claim | source.\n"
    "\n"
    "The lease ends when the shell ends, after --time TIME if that comes first, and at once with "
    "`berth release`; `berth extend` makes it last longer. When it has ended, an interactive bash, "
    "zsh or fish has its variables as they were before. A process stays behind and holds the lease, "
    "the keeper; killing it ends the lease.\n"
    "\n"
    "In a shell that has a claim already, it leases another GPU, which the shell uses from then on. "
    "The first lease goes on, and the shell uses it again when the second has ended. With --inside "
    "it takes a part of the GPUs that the shell has. In Python:\n"
    "\n"
    "    answer = json.loads(subprocess.check_output([\"berth\", \"claim\", \"--json\"]))\n"
    "    os.environ.update(answer[\"environment\"])";

class Claim : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kClaimAbout;
    add_lease_options(syntax, lease_);
    syntax.option(supervise::kLeaseGroup, "pid", "PID",
                  "end the lease when this process ends (default: the shell that calls)",
                  command::count_into(process_));
    syntax.flag(supervise::kLeaseGroup, "inside",
                "in a shell with a claim: take a part of its GPUs (default: take other GPUs)", inside_);
    jobs::add_notify_options(syntax, supervise::kLeaseGroup, wish_);
    syntax.flag(supervise::kLeaseGroup, "json", "as JSON (docs/schema/claim.json)", json_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(lease_));
    BERTH_DO(check(wish_));
    caller_ = supervise::calling_shell();
    shell_ = supervise::shell_kind(caller_);
    // On a terminal, no shell would set the variables, but the lease would be there.
    if (!json_ && ::isatty(STDOUT_FILENO) == 1) return fail(ErrorCode::usage, line_to_type(environment));
    // VS Code starts a shell to read what ~/.bashrc sets, and ends it: its windows would keep the
    // number of a GPU that is somebody else's by then.
    if (!json_ && !sys::variable("VSCODE_RESOLVING_ENVIRONMENT").empty()) return command::Output{};
    if (!process_) process_ = caller_;
    const auto owner = sys::process_owner(*process_);
    if (owner && *owner != ::geteuid() && ::geteuid() != 0)
      return fail(ErrorCode::failure, "process {} is another user's", *process_);
    return supervise::leave_keeper(environment, *process_, [&] { return take(environment); });
  }

  // A shell whose eval gets nothing to do succeeds, and its job would run without a lease. Each of
  // bash, dash, zsh and fish gives this command's status.
  std::string out_of_failure(int exit_status, std::span<char* const> words) const override {
    const bool for_shell =
        !std::ranges::any_of(words, [](std::string_view word) { return word == "--json"; });
    return for_shell && ::isatty(STDOUT_FILENO) == 0 ? fmt::format("sh -c 'exit {}'\n", exit_status) : "";
  }

 private:
  std::string line_to_type(command::Environment& environment) const {
    std::string words = "berth";
    for (const std::string_view word : environment.words()) words += " " + quoted(shell_, word);
    const std::string line =
        shell_ == supervise::ShellKind::fish ? words + " | source" : fmt::format("eval \"$({})\"", words);
    return fmt::format("the shell has to read what claim prints. Nothing is leased yet; type: {}", line);
  }

  Result<supervise::KeptLease> take(command::Environment& environment) const {
    BERTH_LET(auto domain,
              command::find_domain(inside_ ? leasing::InClaim::inside : leasing::InClaim::beside));
    BERTH_LET(const auto session, open_session_at(std::move(domain), environment, lease_));
    leasing::TicketWords words{sys::process_command(*process_), lease_.note, view::request_in_words(lease_)};
    words.kept = true;
    words.job = static_cast<std::uint32_t>(*process_);
    if (!sys::variable("BERTH_LEASE").empty()) BERTH_DO(add_own_leases(session.domain(), words));
    auto lease = take_lease(session, lease_, words);
    environment.end_probe();
    if (!lease) return std::unexpected(lease.error());
    command::Output answer = answer_for(session.domain(), *lease);
    supervise::KeptLease kept{std::move(*lease), std::move(answer), process_};
    if (!wish_.targets.empty()) kept.tell_others = teller(kept.lease);
    BERTH_LET(const auto times, receipts::sampling_times(lease_.clean));
    kept.sampling =
        std::make_unique<receipts::RunSampling>(kept.lease.ticket(), session.domain(), lease_.source, times);
    kept.mask.emplace(kept.lease.ticket(), claim_environment(session.domain(), kept.lease), *kept.sampling);
    kept.clears_variables = !json_ && shell_ != supervise::ShellKind::other && *process_ == caller_;
    return kept;
  }

  // The keeper has neither the folder of the caller nor its error stream.
  std::function<void(NoticeEvent, const std::string&)> teller(const leasing::HeldLease& lease) const {
    auto environment = command::own_environment();
    if (const auto folder = sys::current_folder())
      environment.push_back(fmt::format("{}={}", jobs::kNotifyFolder, *folder));
    environment.push_back(fmt::format("{}={}", jobs::kNotifyTerminal, *process_));
    std::string subject = fmt::format("lease {}", lease.short_name());
    if (!lease_.note.empty()) subject += fmt::format(" ({})", lease_.note);
    return [wish = wish_, environment, subject](NoticeEvent event, const std::string& words) {
      jobs::send_notices(wish, {event, "", "", subject, words}, environment, nullptr);
    };
  }

  static Result<void> add_own_leases(const leasing::Domain& domain, leasing::TicketWords& words) {
    BERTH_LET(const auto books, domain.store->look());
    for (const Ticket& ticket : books.ledger.tickets) {
      if (ticket.phase == TicketPhase::granted && ticket.uid == ::geteuid() && ticket.kept &&
          ticket.job.pid == *words.job)
        words.beside.push_back(ticket.id);
    }
    return {};
  }

  command::Output answer_for(const leasing::Domain& domain, const leasing::HeldLease& lease) const {
    const JobMask mask = claim_environment(domain, lease);
    const Ticket& ticket = lease.ticket();
    command::Output answer;
    answer.err = command::as_lines(leasing::notes_on(lease));
    // The first lease may have ended while this one was waited for. Then nothing of it is put back.
    const Ticket* first =
        domain.beside ? find_ticket(lease.world().ledger, domain.beside->id, TicketPhase::granted) : nullptr;
    const bool is_beside = first != nullptr;
    const bool has_lost_first = domain.beside && !is_beside;
    const std::string words = got_in_words(first, lease);
    if (json_) {
      answer.out = view::claim_json({ticket, lease.devices(), mask.variables,
                                     said_end_at_s(ticket, lease.world().facts.booted_at_s).value_or(0)});
      if (is_beside) answer.err += command::as_lines({words});
      return answer;
    }
    // In a script, or in ~/.bashrc of a shell without a terminal, a first claim prints no message.
    if (is_beside || ::isatty(STDERR_FILENO) == 1) answer.err += command::as_lines({words});
    supervise::ClaimScript script{
        to_text(ticket.id),          lease.short_name(), {},
        domain.ticket_of(ticket.id), ::getpid(),         std::string(supervise::kKeeperName)};
    const auto of_environment = [](const std::string& name) -> std::optional<std::string> {
      const char* value = std::getenv(name.c_str());
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    const auto before = [&](const std::string& name) {
      if (!has_lost_first) return of_environment(name);
      const auto outer = domain.masks.find(name);
      return outer == domain.masks.end() ? std::nullopt : std::optional<std::string>(outer->second);
    };
    for (const auto& [name, value] : mask.variables) script.variables.push_back({name, value, before(name)});
    for (const std::string& name : mask.unset)
      script.variables.insert(script.variables.end() - 1, {name, std::nullopt, of_environment(name)});
    answer.out = claim_script(shell_, script);
    return answer;
  }

  // A claim beside this one has to know what the mask was before both.
  JobMask claim_environment(const leasing::Domain& domain, const leasing::HeldLease& lease) const {
    JobMask mask = supervise::lease_environment(domain, lease, lease_);
    for (const auto& [name, value] : domain.masks)
      mask.variables.insert(mask.variables.end() - 1, {std::string(leasing::kOuterMask) + name, value});
    return mask;
  }

  // `first`: the lease that the shell had before and still has; null if there is none.
  std::string got_in_words(const Ticket* first, const leasing::HeldLease& lease) const {
    const leasing::World& world = lease.world();
    const std::string who = *process_ == caller_ ? "this shell" : fmt::format("process {}", *process_);
    const auto end_s = said_end_at_s(lease.ticket(), world.facts.booted_at_s);
    std::string text = fmt::format("{} now uses GPU {} (lease {})", who, lease.labels(), lease.short_name());
    if (end_s)
      text +=
          fmt::format(" until {}", view::clock_time(*end_s, command::Environment::style_of(STDERR_FILENO)));
    if (first != nullptr)
      text += fmt::format("; you still hold GPU {} (lease {})",
                          device_labels(first->devices, world.facts.snapshot),
                          short_name(world.ledger, first->id));
    return text;
  }

  supervise::LeaseOptions lease_;
  NoticeWish wish_;
  std::optional<pid_t> process_;
  bool json_ = false;
  bool inside_ = false;
  pid_t caller_ = 0;                                          ///< who evaluates what is printed
  supervise::ShellKind shell_ = supervise::ShellKind::other;  ///< of that process
};

}  // namespace

BERTH_COMMAND(make_claim, Claim);

}  // namespace berth::cli
