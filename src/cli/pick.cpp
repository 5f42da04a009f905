#include <unistd.h>

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "berth/answers/answers.h"
#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/hosts/model/host_offer.h"
#include "berth/hosts/model/host_selection.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/jobs/submission.h"
#include "berth/lease/domain.h"
#include "berth/request/request.h"
#include "berth/supervise/claim_keeper.h"
#include "berth/supervise/take_lease.h"
#include "berth/view/answers_json.h"
#include "berth/view/refusal.h"

namespace berth::cli {
namespace {

constexpr std::string_view kPickAbout =
    "Prints the value for CUDA_VISIBLE_DEVICES (AMD GPUs: ROCR_VISIBLE_DEVICES) and nothing else. If "
    "it fails, it prints -1, which shows a program no GPU, so that a script that ignores the status "
    "does not run on all GPUs.\n"
    "\n"
    "    export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$(berth pick -n 2)\n"
    "\n"
    "It looks and holds nothing: another user who picks next may get the same GPUs. `berth run` "
    "leases them; --hold 30s leases them for 30 s, in which your program can start to use them.";

class Pick : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kPickAbout;
    add_request_options(syntax, options_);
    syntax.add(supervise::time_option("judge it as a job with this time limit (30m)", options_));
    syntax.option("Output", "hold", "TIME", "lease them for this long: a process stays behind and holds them",
                  [this](std::string_view value) -> Result<void> {
                    BERTH_LET(const auto seconds, seconds_from_text(value));
                    BERTH_DO(check_time(seconds));
                    hold_s_ = options_.time_s = seconds;
                    return {};
                  });
    syntax.flag("Output", "json", "as JSON (docs/schema/pick.json)", json_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(options_));
    if (hold_s_) return supervise::leave_keeper(environment, std::nullopt, [&] { return hold(environment); });
    BERTH_LET(const auto session, open_session(environment, options_));
    BERTH_LET(const auto answer, session.pick(options_));
    if (const auto* refusal = std::get_if<leasing::ExplainedRefusal>(&answer))
      return std::unexpected(in_words(*refusal));
    return answer_with(std::get<leasing::PickedDevices>(answer), "", 0);
  }

  std::string out_of_failure(int /*exit_status*/, std::span<char* const> words) const override {
    const bool as_json = std::ranges::any_of(words, [](std::string_view word) { return word == "--json"; });
    return as_json || ::isatty(STDOUT_FILENO) == 1 ? "" : "-1\n";
  }

 private:
  static Error in_words(const leasing::ExplainedRefusal& refusal) {
    return answers::in_words(refusal, command::Environment::style_of(STDERR_FILENO));
  }

  Result<supervise::KeptLease> hold(command::Environment& environment) const {
    BERTH_LET(const auto session, open_session(environment, options_));
    leasing::TicketWords words{fmt::format("pick --hold {}", duration_for_people(*hold_s_)), "",
                               view::request_in_words(options_)};
    words.kept = true;
    BERTH_LET(auto answer, session.acquire(options_, words));
    if (const auto* refusal = std::get_if<leasing::ExplainedRefusal>(&answer))
      return std::unexpected(in_words(*refusal));
    auto& lease = std::get<leasing::HeldLease>(answer);
    const Ticket& ticket = lease.ticket();
    command::Output output = answer_with({lease.world(), {ticket.devices, lease.notes()}}, to_text(ticket.id),
                                         ticket.since_s + *hold_s_);
    return supervise::KeptLease{std::move(lease), std::move(output)};
  }

  /// `lease`: holds them, until then.
  command::Output answer_with(const leasing::PickedDevices& picked, const std::string& lease,
                              std::int64_t held_until_s) const {
    const Choice& choice = picked.choice;
    const Snapshot& snapshot = picked.world.facts.snapshot;
    const JobMask mask =
        job_mask(choice.uuids, snapshot, options_.uuids || picked.world.facts.policy.mask == MaskForm::uuid);
    std::vector<std::string> notes = leasing::notes_on(picked);
    // Mostly the models are alike, and then no variable matters.
    if (numbering_note(mask, snapshot, {})) {
      if (auto note = numbering_note(mask, snapshot, leasing::inherited_masks()))
        notes.push_back(*std::move(note));
    }
    command::Output output;
    output.out =
        json_ ? view::pick_json({choice, snapshot, mask, notes, lease, held_until_s}) : mask.visible + "\n";
    output.err = command::as_lines(notes);
    return output;
  }

  command::RequestOptions options_;
  std::optional<std::int64_t> hold_s_;
  bool json_ = false;
};

}  // namespace

BERTH_COMMAND(make_pick, Pick);

namespace {

constexpr std::string_view kWhyAbout =
    "Takes a request as `pick` and `run` do. Says for every GPU that it would be granted now, or the "
    "first reason why not: who has it, since when, which number is over which limit. Then says which "
    "looser request would succeed now. With JOB it says why this job of yours waits, and if it stands in the "
    "queue, the same of its GPUs. Changes nothing. The status is 0 also if the answer is no.\n"
    "\n"
    "    berth why -n 2 --free 40G\n"
    "    berth why 12";

class Why : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[JOB]";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = kWhyAbout;
    add_request_options(syntax, options_);
    syntax.add(supervise::time_option("judge it as a job with this time limit (30m)", options_));
    command::Option yield = supervise::lease_option("yield", options_);
    yield.help = "judge it as a job that gives way to requests that do not yield";
    syntax.add(yield);
    note_words(syntax.options, request_words_);
    syntax.text("The job", "job", "JOB", "why this job of yours waits, as the word JOB", job_);
    syntax.flag("Output", "json", "as JSON (docs/schema/why.json; of other machines, why-hosts.json)", json_);
    syntax.add(command::colour_option());
    add_anywhere_options(syntax, anywhere_, "say for every host whether it would be chosen, and why");
    syntax.add(command::near_option(near_));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    BERTH_DO(settle(anywhere_));
    if (!words.empty() || !job_.empty()) return of_job(environment, words);
    BERTH_DO(settle(options_));
    if (anywhere_.anywhere) return on_which_host();
    if (!near_.empty()) return fail(ErrorCode::usage, "--near needs --anywhere");
    return of_request(environment);
  }

 private:
  Result<command::Output> of_request(command::Environment& environment) {
    BERTH_LET(auto session, open_session(environment, options_));
    session.asks_for_gate();
    BERTH_LET(const auto found, session.why(options_));
    const view::Why why = answers::facts_of(found);
    return command::Output{
        .out = json_ ? view::why_json(why) : view::explanation(why, command::Environment::style_of(1)),
        .err = command::as_lines(leasing::notes_on(found.world))};
  }

  Result<command::Output> of_job(command::Environment& environment, std::vector<std::string> words) {
    if (!job_.empty()) words.push_back(job_);
    if (words.size() != 1) return fail(ErrorCode::usage, "why does which job wait? One at a time");
    if (!request_words_.empty() || anywhere_.anywhere || !near_.empty() || json_)
      return fail(ErrorCode::usage, "a job has a request of its own: berth why {}, and nothing else",
                  words.front());
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto named, named_jobs(spool, words));
    const jobs::NumberedJob& job = named.front();
    BERTH_LET(const auto wait, jobs::wait_of(spool, job));
    command::Output output{.out = wait.told + "\n"};
    if (!wait.in_queue) return output;
    BERTH_LET(const auto request, jobs::request_of(job.job.request));
    options_ = request.lease;
    BERTH_LET(auto session, open_session(environment, options_));
    session.asks_for_gate();
    BERTH_LET(const auto found, session.why(options_));
    view::Why why = answers::facts_of(found);
    // The job has a place already: `told` says it.
    why.standing = nullptr;
    why.starts_at_s.reset();
    output.out += "\n" + view::explanation(why, command::Environment::style_of(1));
    output.err = command::as_lines(leasing::notes_on(found.world));
    return output;
  }

  Result<command::Output> on_which_host() const {
    BERTH_LET(const auto meant, hosts::hosts_meant(anywhere_));
    const auto answers = hosts::ask_for_offers(meant, options_, near_);
    const auto ranked = rank_hosts(options_, answers);
    return command::Output{
        .out =
            json_ ? view::why_of_hosts_json(options_, ranked, answers, hosts::host_selection::kMostHostQueues)
                  : view::why_of_hosts(ranked, answers, hosts::host_selection::kMostHostQueues,
                                       command::Environment::style_of(1))};
  }

  command::RequestOptions options_;
  std::vector<std::string> request_words_;  ///< the options of a request, as typed
  std::string job_;
  bool json_ = false;
  command::AnywhereOptions anywhere_;
  std::string near_;
};

}  // namespace

BERTH_COMMAND(make_why, Why);

}  // namespace berth::cli
