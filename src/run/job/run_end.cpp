#include "berth/job/run_end.h"

#include <algorithm>
#include <array>

#include "berth/base/record.h"

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

namespace {

// A shell says by such a status that there is no such program, and by a higher one which signal
// ended it.
constexpr int kCannotStart = 126;
constexpr int kNotFound = 127;
constexpr int kSignal = 128;
constexpr int kLastSignal = 31;
// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV and SIGSYS.
constexpr std::array kCrashes{4, 5, 6, 7, 8, 11, 31};

// 0: none.
int signal_of(const ProcessEnd& end) {
  const bool is_told = kSignal < end.exit_status && end.exit_status <= kSignal + kLastSignal;
  return end.signal == 0 && is_told ? end.exit_status - kSignal : end.signal;
}

template <class List>
bool has(const List& list, int number) {
  return std::ranges::find(list, number) != list.end();
}

bool has_tries(const std::optional<TaskStanding>& task, unsigned retries) {
  return task && task->phase == TaskPhase::running && !task->asked_to_end && own_runs(*task) <= retries;
}

}  // namespace

Ending noted_as(const RunEnd& end) {
  const int status = end.process.exit_status;
  if (end.by != EndedBy::itself || status == kCannotStart || status == kNotFound) return Ending::by_others;
  if (const int signal = signal_of(end.process))
    return has(kCrashes, signal) ? Ending::badly : Ending::by_others;
  return status == 0 ? Ending::well : Ending::badly;
}

Again again(const RunEnd& end, const AgainWish& wish, const std::optional<TaskStanding>& task) {
  if (end.by == EndedBy::waiter) return wish.requeue ? Again::has_given_way : Again::no;
  const int status = shell_status(end.process);
  // Such a status says what to do, also after the time: a job may have kept its state for the next
  // run.
  const bool is_named = has(wish.statuses, status);
  const bool counts =
      end.by == EndedBy::time ? is_named : end.by == EndedBy::itself && (wish.statuses.empty() || is_named);
  return counts && status != 0 && has_tries(task, wish.retries) ? Again::has_failed : Again::no;
}

}  // namespace berth
