#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "berth/cli/calling_shell.h"
#include "berth/cli/command.h"
#include "berth/cli/hold.h"
#include "berth/cli/lease_options.h"
#include "berth/cli/question.h"
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
    "The lease ends when the shell ends, after --for TIME if that comes first, and at once with `berth "
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
    syntax.options.push_back({kLeaseGroup,
                              0,
                              "for",
                              "TIME",
                              "end the lease after so long (4h) at the latest",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                BERTH_LET(const auto seconds, seconds_from_text(value));
                                if (seconds < 1) return fail(ErrorCode::usage, "must be a second or more");
                                until_.time = std::chrono::seconds(seconds);
                                return {};
                              }});
    syntax.options.push_back({kLeaseGroup,
                              0,
                              "pid",
                              "PID",
                              "end it with this process (default: the shell that calls)",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                BERTH_LET(const auto pid, number_at_least(value, 1));
                                until_.process = static_cast<pid_t>(pid);
                                return {};
                              }});
    syntax.options.push_back(
        {kLeaseGroup, 0, "json", "", "as JSON (docs/schema/claim.json)", {}, raise_flag(json_)});
    return syntax;
  }

  Result<Output> run(Environment& environment, const std::vector<std::string>&) override {
    BERTH_DO(settle(lease_));
    if (!until_.process) until_.process = calling_shell();
    const auto owner = sys::process_owner(*until_.process);
    if (owner && *owner != ::geteuid() && ::geteuid() != 0)
      return fail(ErrorCode::failure, fmt::format("process {} is another user's", *until_.process));
    return leave_keeper(environment, until_, [&] { return take(environment); });
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
    leasing::TicketWords words{sys::process_command(*until_.process), lease_.note,
                               render::request_in_words(lease_.request.request)};
    words.kept = true;
    words.job = static_cast<std::uint32_t>(*until_.process);
    auto lease = take_lease(session, lease_, words);
    environment.end_probe();
    if (!lease) return std::unexpected(lease.error());
    Output answer = answer_for(session.place(), *lease);
    return Kept{std::move(*lease), std::move(answer)};
  }

  Output answer_for(const leasing::Place& place, const leasing::HeldLease& lease) const {
    const auto variables = lease_environment(place, lease, lease_.request.uuids);
    const Ticket& ticket = lease.ticket();
    Output answer;
    answer.err = as_lines(leasing::notes_on(lease));
    if (json_) {
      const std::int64_t until_s = until_.time ? ticket.since_s + until_.time->count() : 0;
      answer.out = render::claim_json({ticket, lease.devices(), variables, until_s});
      return answer;
    }
    // None of the values has a character that means something to a shell.
    for (const auto& [name, value] : variables) answer.out += fmt::format("export {}={}\n", name, value);
    return answer;
  }

  LeaseOptions lease_;
  KeptUntil until_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_claim() {
  return std::make_unique<Claim>();
}

}  // namespace berth::cli
