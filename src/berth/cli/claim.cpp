#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "berth/cli/calling_shell.h"
#include "berth/cli/command.h"
#include "berth/cli/hold.h"
#include "berth/cli/lease_options.h"
#include "berth/cli/question.h"
#include "berth/core/job_mask.h"
#include "berth/core/units.h"
#include "berth/render/explain.h"
#include "berth/render/json.h"
#include "berth/sys/process_identity.h"

namespace berth::cli {
namespace {

constexpr std::string_view kClaimAbout =
    "Leases GPUs for the shell or notebook that calls it, and prints what that has to set:\n"
    "\n"
    "    eval \"$(berth claim -n 1)\"\n"
    "\n"
    "Where it fails, eval fails with the status; in fish: berth claim | source.\n"
    "\n"
    "The lease ends when the shell ends, after --time TIME if that comes first, and at once with `berth "
    "release`. "
    "A process stays behind that holds it, the keeper; killing it ends the lease. In Python:\n"
    "\n"
    "    answer = json.loads(subprocess.check_output([\"berth\", \"claim\", \"--json\"]))\n"
    "    os.environ.update(answer[\"environment\"])";

class Claim : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.about = kClaimAbout;
    add_lease_options(syntax, lease_);
    syntax.options.push_back(time_option("for", "older name of --time", lease_.request.request));
    syntax.options.push_back({kLeaseGroup,
                              0,
                              "pid",
                              "PID",
                              "end it with this process (default: the shell that calls)",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                BERTH_LET(const auto pid, number_at_least(value, 1));
                                process_ = static_cast<pid_t>(pid);
                                return {};
                              }});
    syntax.options.push_back(
        {kLeaseGroup, 0, "json", "", "as JSON (docs/schema/claim.json)", {}, raise_flag(json_)});
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    BERTH_DO(settle(lease_));
    if (!process_) process_ = calling_shell();
    const auto owner = sys::process_owner(*process_);
    if (owner && *owner != ::geteuid() && ::geteuid() != 0)
      return fail(ErrorCode::failure, fmt::format("process {} is another user's", *process_));
    return leave_keeper(environment, *process_, [&] { return take(environment); });
  }

  // A shell whose eval gets nothing to do succeeds, and its job would run without a lease. Each of bash,
  // dash, zsh and fish gives this command's status.
  std::string out_of_failure(int exit_status, std::span<char* const> words) const override {
    const bool for_shell =
        !std::ranges::any_of(words, [](std::string_view word) { return word == "--json"; });
    return for_shell && ::isatty(STDOUT_FILENO) == 0 ? fmt::format("sh -c 'exit {}'\n", exit_status) : "";
  }

 private:
  Result<Kept> take(Environment& environment) const {
    BERTH_LET(const auto session, open_session(environment, lease_.request));
    leasing::TicketWords words{sys::process_command(*process_), lease_.note,
                               render::request_in_words(lease_.request.request)};
    words.kept = true;
    words.job = static_cast<std::uint32_t>(*process_);
    auto lease = take_lease(session, lease_, words);
    environment.end_probe();
    if (!lease) return std::unexpected(lease.error());
    Output answer = answer_for(session.place(), *lease);
    return Kept{std::move(*lease), std::move(answer), process_};
  }

  Output answer_for(const leasing::Place& place, const leasing::HeldLease& lease) const {
    const JobMask mask = lease_environment(place, lease, lease_.request.uuids);
    const Ticket& ticket = lease.ticket();
    Output answer;
    answer.err = as_lines(leasing::notes_on(lease));
    if (json_) {
      answer.out = render::claim_json({ticket, lease.devices(), mask.variables,
                                       said_end_at_s(ticket, lease.world().facts.booted_at_s).value_or(0)});
      return answer;
    }
    // None of the values has a character that means something to a shell.
    for (const std::string& name : mask.unset) {
      if (std::getenv(name.c_str()) != nullptr) answer.out += fmt::format("unset {}\n", name);
    }
    for (const auto& [name, value] : mask.variables) answer.out += fmt::format("export {}={}\n", name, value);
    return answer;
  }

  LeaseOptions lease_;
  std::optional<pid_t> process_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_claim() {
  return std::make_unique<Claim>();
}

}  // namespace berth::cli
