#include <fmt/format.h>

#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/hosts/anywhere.h"
#include "berth/hosts/model/host_selection.h"
#include "berth/supervise/lease_options.h"
#include "berth/view/explain.h"
#include "berth/view/json.h"
#include "berth/view/offers.h"

namespace berth::cli {
namespace {

constexpr std::string_view kWhyAbout =
    "Takes a request as `pick` and `run` do. Says for every GPU that it would be granted now, or the "
    "first reason why not: who has it, since when, which number is over which limit. Then says which "
    "looser request would succeed now. Changes nothing. The status is 0 also if the answer is no.";

class Why : public command::Command {
 public:
  command::Syntax syntax() override {
    command::Syntax syntax;
    syntax.about = kWhyAbout;
    add_request_options(syntax, options_);
    syntax.options.push_back(
        supervise::time_option("time", "judge it as a job with this time limit (30m)", options_.request));
    syntax.options.push_back({"Output",
                              0,
                              "json",
                              "",
                              "as JSON (docs/schema/why.json; of other machines, why-hosts.json)",
                              {},
                              command::raise_flag(json_)});
    add_anywhere_options(syntax, anywhere_, "say for every host whether it would be chosen, and why");
    syntax.options.push_back(command::near_option(near_));
    return syntax;
  }

  Result<command::Output> run(command::Environment& environment, const std::vector<std::string>&) override {
    BERTH_DO(settle(options_));
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere) return on_which_host();
    if (!near_.empty()) return fail(ErrorCode::usage, "--near needs --anywhere");
    BERTH_LET(const auto session, open_session(environment, options_));
    BERTH_LET(const auto found, session.why(options_.request));
    const view::Why why{found.request,    found.world.facts.snapshot,
                        found.verdicts,   found.possible,
                        found.looser,     found.standing ? &*found.standing : nullptr,
                        found.starts_at_s};
    return command::Output{
        .out = json_ ? view::why_json(why) : view::explanation(why, command::Environment::style_of(1)),
        .err = command::as_lines(leasing::notes_on(found.world))};
  }

 private:
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
  bool json_ = false;
  command::AnywhereOptions anywhere_;
  std::string near_;
};

}  // namespace

std::unique_ptr<command::Command> make_why() {
  return std::make_unique<Why>();
}

}  // namespace berth::cli
