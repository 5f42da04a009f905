
#include "berth/base/fail.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/hosts/model/host_selection.h"
#include "berth/hosts/model/offers.h"
#include "berth/jobs/job_request.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"
#include "berth/supervise/lease_options.h"
#include "berth/view/answers_json.h"

namespace berth::cli {
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
    syntax.add(
        supervise::time_option("judge it as a job with this time limit (30m)", options_.request));
    command::Option yield = supervise::lease_option("yield", options_.request);
    yield.help = "judge it as a job that gives way to requests that do not yield";
    syntax.add(yield);
    note_words(syntax.options, request_words_);
    syntax.text("The job", "job", "JOB", "why this job of yours waits, as the word JOB", job_);
    syntax.flag("Output", "json", "as JSON (docs/schema/why.json; of other machines, why-hosts.json)", json_);
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
    BERTH_LET(const auto found, session.why(options_.request));
    const view::Why why = leasing::facts_of(found);
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
    options_ = request.lease.request;
    BERTH_LET(auto session, open_session(environment, options_));
    session.asks_for_gate();
    BERTH_LET(const auto found, session.why(options_.request));
    view::Why why = leasing::facts_of(found);
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
    const auto ranked = rank_hosts(options_.request, answers);
    return command::Output{.out = json_ ? view::why_of_hosts_json(options_.request, ranked, answers,
                                                                  host_selection::kMostHostQueues)
                                        : view::why_of_hosts(ranked, answers, host_selection::kMostHostQueues,
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
