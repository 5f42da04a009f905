#include "berth/job/end_signals.h"
#include "berth/base/steady_time.h"

namespace berth {
namespace {

using std::chrono::milliseconds;
using EndMoment = std::optional<milliseconds>;

// A process that was forked in this moment is killed a moment later.
constexpr milliseconds kKillAgain = std::chrono::seconds(1);

template <class End>
EndStep<End> all_asked(EndMoment kill_at) {
  return {AllAsked{kill_at}, EndAction::ask_rest};
}

EndStep<EndOfCommand> of_command(const EndEvent& event, milliseconds now) {
  if (const auto* time = std::get_if<TimeWish>(&event)) return all_asked<EndOfCommand>(now + time->grace);
  if (const auto* cancel = std::get_if<CancelWish>(&event))
    return {CommandAsked{now + kTimeForOwnRest, cancel->grace}, EndAction::ask_command};
  if (std::holds_alternative<ReleaseWish>(event))
    return {CommandAsked{now + kTimeForOwnRest, {}}, EndAction::ask_command};
  return {NotAsked{}};
}

EndStep<EndOfRest> of_rest(const EndEvent& event, milliseconds now) {
  if (std::holds_alternative<ReleaseWish>(event)) return all_asked<EndOfRest>({});
  if (const auto* cancel = std::get_if<CancelWish>(&event)) return all_asked<EndOfRest>(now + cancel->grace);
  if (const auto* time = std::get_if<TimeWish>(&event)) return all_asked<EndOfRest>(now + time->grace);
  return {NotAsked{}};
}

EndMoment kill_of(const CommandAsked& asked, milliseconds now) {
  return asked.grace ? EndMoment(now + *asked.grace) : EndMoment();
}

EndStep<EndOfCommand> of_command_asked(CommandAsked asked, const EndEvent& event, milliseconds now) {
  if (const auto* time = std::get_if<TimeWish>(&event))
    return all_asked<EndOfCommand>(earlier(kill_of(asked, asked.rest_at), now + time->grace));
  if (now >= asked.rest_at) return all_asked<EndOfCommand>(kill_of(asked, now));
  if (std::holds_alternative<ReleaseWish>(event)) return {asked, EndAction::ask_command};
  if (const auto* cancel = std::get_if<CancelWish>(&event)) asked.grace = cancel->grace;
  return {asked};
}

template <class End>
EndStep<End> of_all_asked(const AllAsked& asked, const EndEvent& event, milliseconds now) {
  if (asked.kill_at && now >= *asked.kill_at) return {AllAsked{now + kKillAgain}, EndAction::kill};
  if (const auto* cancel = std::get_if<CancelWish>(&event))
    return all_asked<End>(earlier(asked.kill_at, now + cancel->grace));
  if (const auto* time = std::get_if<TimeWish>(&event))
    return all_asked<End>(earlier(asked.kill_at, now + time->grace));
  if (std::holds_alternative<ReleaseWish>(event) && !asked.kill_at) return {asked, EndAction::ask_again};
  return {asked};
}

}  // namespace

EndStep<EndOfCommand> next_step(const EndOfCommand& now_is, const EndEvent& event, milliseconds now) {
  if (const auto* asked = std::get_if<CommandAsked>(&now_is)) return of_command_asked(*asked, event, now);
  if (const auto* asked = std::get_if<AllAsked>(&now_is))
    return of_all_asked<EndOfCommand>(*asked, event, now);
  return of_command(event, now);
}

EndStep<EndOfRest> next_step(const EndOfRest& now_is, const EndEvent& event, milliseconds now) {
  if (const auto* asked = std::get_if<AllAsked>(&now_is)) return of_all_asked<EndOfRest>(*asked, event, now);
  return of_rest(event, now);
}

EndStep<EndOfRest> after_command(const EndOfCommand& now_is, milliseconds now) {
  if (const auto* asked = std::get_if<CommandAsked>(&now_is))
    return all_asked<EndOfRest>(kill_of(*asked, now));
  const auto* asked = std::get_if<AllAsked>(&now_is);
  if (asked == nullptr) return {NotAsked{}};
  // A process that the command has started since then is ended by the SIGKILL, if there is one.
  if (asked->kill_at) return next_step(EndOfRest(*asked), TimePasses{}, now);
  return all_asked<EndOfRest>({});
}

EndMoment next_due(const EndOfCommand& end) {
  if (const auto* asked = std::get_if<CommandAsked>(&end)) return asked->rest_at;
  if (const auto* asked = std::get_if<AllAsked>(&end)) return asked->kill_at;
  return std::nullopt;
}

EndMoment next_due(const EndOfRest& end) {
  const auto* asked = std::get_if<AllAsked>(&end);
  return asked != nullptr ? asked->kill_at : std::nullopt;
}

}  // namespace berth
