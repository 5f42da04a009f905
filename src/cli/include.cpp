#include <unistd.h>

#include <algorithm>

#include "berth/base/fail.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/lease/exclusions.h"
#include "berth/request/selector.h"
#include "berth/site/site_file.h"

namespace berth::cli {
namespace {

constexpr std::string_view kIncludeAbout =
    "Ends that your requests pass these GPUs over because of runs that died on them (state \"passed over\" "
    "of berth list): what has run until now counts no more. Root does so for all users. GPU: an index, a "
    "UUID or the start of one. By root it also ends what `berth exclude` has done.\n"
    "\n"
    "    berth include 3";

class Include : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "GPU...";
    syntax.about = kIncludeAbout;
    syntax.add(command::source_option(options_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty()) return fail(ErrorCode::usage, "include which GPU? berth include GPU...");
    BERTH_LET(auto domain, command::find_domain());
    BERTH_LET(const auto session,
              command::open_session_at(leasing::machine_around(std::move(domain)), environment, options_));
    BERTH_LET(const auto world, session.look(Request{}));
    PastRun included{0, world.looked_at, 0, Ending::included, {}};
    BERTH_LET(included.devices, uuids_named(words, world.facts.snapshot));
    const auto is_passed_over = [&](const std::string& uuid) {
      return world.facts.passed_over.contains(uuid);
    };
    const bool was_passed_over = std::ranges::any_of(included.devices, is_passed_over);
    bool was_excluded = false;
    const std::string excluded = site::standard_site_file_paths().excluded;
    if (!excluded.empty() && ::access(excluded.c_str(), W_OK) == 0) {
      BERTH_LET(was_excluded, leasing::end_exclusion(excluded, included.devices));
    }
    const std::string still_excluded = was_excluded ? "" : excluded_in_words(world, included.devices);
    if (!session.domain().store->note_outcome(included) && !was_excluded && still_excluded.empty())
      return fail(ErrorCode::failure,
                  "cannot write to {}/outcomes, so no GPU is passed over because of your runs; "
                  "`sudo berth init` makes this folder",
                  session.domain().store->path());
    const std::string labels = device_labels(included.devices, world.facts.snapshot);
    const std::string_view of_whom = ::geteuid() == 0 ? "all users" : "yours";
    command::Output output;
    if (was_passed_over || was_excluded)
      output.out = fmt::format("included GPU {}: requests of {} may have it again\n", labels, of_whom);
    else if (still_excluded.empty())
      output.err = fmt::format("berth: GPU {} was not excluded, and no requests of {} passed it over\n",
                               labels, ::geteuid() == 0 ? "root's" : of_whom);
    else
      output.err = command::as_lines({still_excluded});
    return output;
  }

 private:
  // "": the site excludes none of them.
  static std::string excluded_in_words(const leasing::World& world, const std::vector<std::string>& uuids) {
    const auto verdicts = judge(Request{}, world.ledger, world.facts);
    for (const Verdict& verdict : verdicts ? *verdicts : std::vector<Verdict>()) {
      if (verdict.failed != Clause::not_excluded || std::ranges::find(uuids, verdict.uuid) == uuids.end())
        continue;
      const std::string label = device_labels({verdict.uuid}, world.facts.snapshot);
      return fmt::format(
          "GPU {} is {}. Only root ends that: sudo berth include {}, or its [[excluded]] in the "
          "site file",
          label, verdict.reason, label);
    }
    return "";
  }

  command::RequestOptions options_;
};

}  // namespace

BERTH_COMMAND(make_include, Include);

}  // namespace berth::cli
