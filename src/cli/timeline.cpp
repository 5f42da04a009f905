#include <unistd.h>

#include <ctime>

#include "berth/answers/host_report.h"
#include "berth/base/record.h"
#include "berth/cli/known_past.h"
#include "berth/command/command.h"
#include "berth/command/messages.h"
#include "berth/command/open_session.h"
#include "berth/command/watch.h"
#include "berth/timeline/picture.h"

namespace berth::cli {
namespace {

constexpr std::string_view kTimelineAbout =
    "Answers the first questions in words: is a GPU free, and when is the next; where are you; who leaves "
    "one idle; what waits. Then it shows the hours, a line for each GPU: to the left of now who had it and "
    "how busy it was, to the right until when it is leased, and for whom it is reserved then. Below it stand "
    "the requests that wait, from about when they start.\n"
    "\n"
    "The past is there if an agent keeps a history on this machine (berth serve), or with --url another "
    "agent of this machine. What is to come is told by the time limits of leases (--time): without a limit "
    "nobody knows when a lease ends.";

constexpr std::int64_t kMostHours = 72;

class TimelineCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    constexpr std::string_view kPast = "The past";
    syntax.about = kTimelineAbout;
    syntax.option("Options", "hours", "N", "so many hours each way: 1 to 72 (default 6)",
                  [this](std::string_view value) -> Result<void> {
                    const auto hours = number_from_text<std::int64_t>(value);
                    if (!hours || *hours < 1 || *hours > kMostHours)
                      return fail(ErrorCode::usage, "must be a number from 1 to 72");
                    hours_ = *hours;
                    return {};
                  });
    syntax.flag("Options", "ascii", "with plain characters alone", ascii_);
    add_watch_options(syntax, watch_, "as JSON (docs/schema/timeline.json)");
    syntax.add(command::source_option(options_.source));
    syntax.text(kPast, "url", "URL", "ask this agent: http://127.0.0.1:8421", asking_.url);
    add_peer_options(syntax, kPast, asking_);
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    options_.mask = MaskUse::ignore;
    return show(watch_, [&](view::Layout layout) { return look(environment, layout); });
  }

 private:
  Result<command::Output> look(command::Environment& environment, view::Layout layout) {
    BERTH_LET(auto domain, command::find_domain());
    BERTH_LET(const auto session, open_session_at(machine_around(std::move(domain)), environment, options_));
    BERTH_LET(auto world, session.look(options_.request, readings_for_listing()));
    command::Output output;
    output.err = command::as_lines(leasing::notes_on(world));
    idle_.look(world.ledger, world.facts);
    const view::Style style = command::Environment::style_of(STDOUT_FILENO);
    BERTH_LET(const HostReport report, leasing::host_report(std::move(world), idle_, style));
    const std::int64_t each_way_s = hours_ * 3600;
    const auto past = known_past(asking_, each_way_s);
    if (!past && !asking_.url.empty()) output.err += command::as_lines({past.error().message});
    const Timeline line = timeline_of(report, past ? &*past : nullptr,
                                      {.now_s = style.now_s, .back_s = each_way_s, .ahead_s = each_way_s});
    output.out =
        watch_.json ? timeline::to_json(line, layout) : timeline::text_of(line, ::geteuid(), style, ascii_);
    return output;
  }

  command::RequestOptions options_;
  command::WatchOptions watch_;
  PeerOptions asking_;
  std::int64_t hours_ = 6;
  bool ascii_ = false;
  IdleTimes idle_;
};

}  // namespace

BERTH_COMMAND(make_timeline, TimelineCommand);

}  // namespace berth::cli
