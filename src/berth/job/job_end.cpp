#include "berth/job/job_end.h"

#include <algorithm>

namespace berth {
namespace {

using std::chrono::milliseconds;
using EndMoment = std::optional<milliseconds>;

// A process that was forked in this moment is killed a moment later.
constexpr milliseconds kKillAgain = std::chrono::seconds(1);

EndStep all_asked(EndMoment kill_at) {
  return {AllAsked{kill_at}, EndAction::ask_rest};
}

EndMoment earlier_of(EndMoment a, milliseconds b) {
  return a ? std::min(*a, b) : b;
}

EndStep of_running(const EndEvent& event, milliseconds now) {
  if (std::holds_alternative<CommandGone>(event)) return {RestLeftBehind{}};
  if (const auto* time = std::get_if<TimeWish>(&event)) return all_asked(now + time->grace);
  if (const auto* cancel = std::get_if<CancelWish>(&event))
    return {CommandAsked{now + kTimeForOwnRest, cancel->grace}, EndAction::ask_command};
  if (std::holds_alternative<ReleaseWish>(event))
    return {CommandAsked{now + kTimeForOwnRest, {}}, EndAction::ask_command};
  return {CommandRuns{}};
}

EndStep of_rest(const EndEvent& event, milliseconds now) {
  if (std::holds_alternative<ReleaseWish>(event)) return all_asked({});
  if (const auto* cancel = std::get_if<CancelWish>(&event)) return all_asked(now + cancel->grace);
  if (const auto* time = std::get_if<TimeWish>(&event)) return all_asked(now + time->grace);
  return {RestLeftBehind{}};
}

EndStep of_command_asked(CommandAsked asked, const EndEvent& event, milliseconds now) {
  if (const auto* time = std::get_if<TimeWish>(&event)) return all_asked(now + time->grace);
  if (std::holds_alternative<CommandGone>(event) || now >= asked.rest_at)
    return all_asked(asked.grace ? EndMoment(now + *asked.grace) : EndMoment());
  if (std::holds_alternative<ReleaseWish>(event)) return {asked, EndAction::ask_command};
  if (const auto* cancel = std::get_if<CancelWish>(&event)) asked.grace = cancel->grace;
  return {asked};
}

EndStep of_all_asked(AllAsked asked, const EndEvent& event, milliseconds now) {
  if (asked.kill_at && now >= *asked.kill_at) return {AllAsked{now + kKillAgain}, EndAction::kill};
  if (const auto* cancel = std::get_if<CancelWish>(&event))
    return all_asked(earlier_of(asked.kill_at, now + cancel->grace));
  if (const auto* time = std::get_if<TimeWish>(&event))
    return all_asked(earlier_of(asked.kill_at, now + time->grace));
  if (std::holds_alternative<ReleaseWish>(event) && !asked.kill_at) return {asked, EndAction::ask_again};
  // A process that the command has started since then is ended by the SIGKILL, if there is one.
  if (std::holds_alternative<CommandGone>(event) && !asked.kill_at) return all_asked({});
  return {asked};
}

}  // namespace

EndStep next_step(const JobEnd& now_is, const EndEvent& event, milliseconds now) {
  if (std::holds_alternative<CommandRuns>(now_is)) return of_running(event, now);
  if (std::holds_alternative<RestLeftBehind>(now_is)) return of_rest(event, now);
  if (const auto* asked = std::get_if<CommandAsked>(&now_is)) return of_command_asked(*asked, event, now);
  return of_all_asked(std::get<AllAsked>(now_is), event, now);
}

EndMoment next_due(const JobEnd& end) {
  if (const auto* asked = std::get_if<CommandAsked>(&end)) return asked->rest_at;
  if (const auto* asked = std::get_if<AllAsked>(&end)) return asked->kill_at;
  return std::nullopt;
}

}  // namespace berth
