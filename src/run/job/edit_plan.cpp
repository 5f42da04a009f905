#include "berth/job/edit_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"

namespace berth {

std::string position_of(std::uint64_t number, std::string_view moved_to) {
  return moved_to.empty() ? fmt::format("{:020}", number) : std::string(moved_to);
}

// As fractions of which these are the digits. There is always room for one more.
std::string position_between(std::string_view before, std::string_view next) {
  std::string position;
  for (std::size_t at = 0;; ++at) {
    const int low = at < before.size() ? before[at] - '0' : 0;
    const bool is_bounded = !next.empty() && position == next.substr(0, at);
    const int high = !is_bounded ? 10 : at < next.size() ? next[at] - '0' : 0;
    if (high - low > 1) return position + static_cast<char>('0' + (low + high) / 2);
    position += static_cast<char>('0' + low);
    // It is below the next one now, and only has to be behind the other.
  }
}

namespace {

using Move = EditWish::Move;

bool any_waits(const std::vector<TaskStanding>& standings) {
  return std::ranges::any_of(standings,
                             [](const TaskStanding& task) { return task.phase == TaskPhase::waiting; });
}

bool any_runs(const std::vector<TaskStanding>& standings) {
  return std::ranges::any_of(standings,
                             [](const TaskStanding& task) { return task.phase == TaskPhase::running; });
}

void sort(std::vector<RivalJob>& rivals) {
  std::ranges::sort(rivals, [](const RivalJob& a, const RivalJob& b) {
    return std::pair(a.position, a.number) < std::pair(b.position, b.number);
  });
}

class Planner {
 public:
  Planner(const EditFacts& facts, const EditWish& wish) : facts_(facts), wish_(wish), rivals_(facts.rivals) {
    sort(rivals_);
  }

  Result<EditPlan> plan() && {
    if (facts_.index)
      return fail(ErrorCode::usage,
                  "a task of an array has no place of its own: edit all of it by berth edit {}",
                  facts_.number);
    if (wish_.move != Move::same && wish_.new_request)
      return fail(ErrorCode::usage,
                  "places change hands only among jobs with the same request: change the request first, and "
                  "then the place");
    if (!any_waits(facts_.standings)) return std::unexpected(not_editable(facts_.number, facts_.standings));
    BERTH_DO(take_place());
    take_hold();
    plan_.new_request = wish_.new_request;
    pass_on();
    if (plan_.leaves_queue && !wish_.yes)
      return fail(ErrorCode::failure,
                  "job {} has a place in the queue of the machine, and would give it up: {}. "
                  "Nothing is changed. {}",
                  facts_.number,
                  wish_.new_request ? "it would join anew, behind all who wait now"
                                    : "no other job of yours with the same request could take it",
                  kSayYes);
    say_what();
    return std::move(plan_);
  }

 private:
  RivalJob& self() { return *std::ranges::find(rivals_, facts_.number, &RivalJob::number); }

  Result<void> take_place() {
    if (wish_.move == Move::same) return {};
    auto others = rivals_;
    std::erase_if(others, [this](const RivalJob& each) { return each.number == facts_.number; });
    auto next = others.end();
    if (wish_.move == Move::first) next = others.begin();
    if (wish_.move == Move::before) {
      next = std::ranges::find(others, wish_.before, &RivalJob::number);
      if (next == others.end()) return no_rival();
    }
    const std::string before = next == others.begin() ? "" : std::prev(next)->position;
    // Behind all that are there, and before those that come later.
    const std::string behind = next == others.end() ? position_of(facts_.newest + 1, "") : next->position;
    std::string& mine = self().position;
    if (before < mine && mine < behind) return {};
    mine = position_between(before, behind);
    plan_.position = mine;
    sort(rivals_);
    return {};
  }

  std::unexpected<Error> no_rival() const {
    if (wish_.before == facts_.number)
      return fail(ErrorCode::usage, "job {0} cannot be before itself", facts_.number);
    return fail(ErrorCode::usage,
                "job {} does not wait with the same request as job {}: only among jobs with the "
                "same request do the places change hands",
                wish_.before, facts_.number);
  }

  void take_hold() {
    RivalJob& mine = self();
    if (!wish_.hold || *wish_.hold == mine.on_hold) return;
    plan_.hold = wish_.hold;
    mine.on_hold = *wish_.hold;
  }

  // Decides which job runs when the process in the queue gets its GPUs.
  void pass_on() {
    const auto in_queue =
        std::ranges::find_if(rivals_, [](const RivalJob& each) { return each.in_queue.has_value(); });
    if (in_queue == rivals_.end()) {
      plan_.awaits_process = std::ranges::any_of(
          rivals_, [](const RivalJob& each) { return each.heir && !each.on_hold && !each.is_put_off; });
      return;
    }
    const bool is_own = in_queue->number == facts_.number;
    if (is_own && wish_.new_request) return leave(*in_queue);
    const auto first = std::ranges::find_if(rivals_, [&](const RivalJob& each) {
      if (each.number == facts_.number && wish_.new_request) return false;
      if (each.on_hold) return false;
      return each.number == in_queue->number || (in_queue->can_pass && each.heir);
    });
    // A job that is held keeps no place that nobody takes: others wait behind it.
    if (first == rivals_.end()) return leave(*in_queue);
    std::optional<TaskId> heir;
    if (first->number != in_queue->number) heir = first->heir;
    if (heir != in_queue->passes_to) plan_.pass = EditPlan::Pass{*in_queue->in_queue, heir};
    const bool comes_later = first->number != facts_.number && first->position > self().position;
    starts_before_ = comes_later && !self().on_hold ? first->number : 0;
  }

  void leave(const RivalJob& job) {
    plan_.leaves_queue = job.in_queue;
    if (job.passes_to) plan_.pass = EditPlan::Pass{*job.in_queue, std::nullopt};
  }

  void say_what() {
    const auto say = [&](std::string sentence) {
      plan_.told += (plan_.told.empty() ? "" : "; ") + std::move(sentence);
    };
    if (plan_.hold)
      say(*plan_.hold
              ? fmt::format("job {0} is held until you let it go: berth edit {0} --no-hold", facts_.number)
              : fmt::format("job {} waits again", facts_.number));
    else if (wish_.hold)
      say(fmt::format("job {} is {} already", facts_.number, *wish_.hold ? "held" : "not held"));
    if (wish_.move != Move::same) say(fmt::format("job {} is {}", facts_.number, where()));
    if (wish_.new_request)
      say(fmt::format("job {} has the new request, and joins the queue with it", facts_.number));
  }

  std::string where() {
    const auto at = static_cast<std::size_t>(std::ranges::find(rivals_, facts_.number, &RivalJob::number) -
                                             rivals_.begin());
    std::string text =
        fmt::format("number {} of your {} jobs with this request that wait", at + 1, rivals_.size());
    if (starts_before_ != 0)
      text += fmt::format(", and job {}, which has joined the queue of the machine, starts before it",
                          starts_before_);
    return text;
  }

  const EditFacts& facts_;
  const EditWish& wish_;
  std::vector<RivalJob> rivals_;  ///< in order
  std::uint64_t starts_before_ = 0;
  EditPlan plan_{};
};

}  // namespace

bool may_run_instead(const Job& job) {
  // How much memory it gets depends on its own earlier runs.
  const bool by_runs = asks_memory_by_runs(job.request.request);
  return !by_runs && job.tenant == 0 && !job.tty && job.at_once == 0 && !job.not_on_last_device &&
         !job.singleton && job.after.empty() && job.after_ok.empty() && job.after_fail.empty() &&
         !job.not_before_s;
}

Error not_editable(std::uint64_t number, const std::vector<TaskStanding>& standings) {
  if (any_runs(standings))
    return {
        ErrorCode::failure,
        fmt::format("job {} runs, and only what waits is edited. `berth extend` makes its lease last longer",
                    number)};
  return {ErrorCode::failure,
          fmt::format("job {} is over ({})", number, standing_word(standing_of_all(standings)))};
}

Result<EditPlan> plan_edit(const EditFacts& facts, const EditWish& wish) {
  return Planner(facts, wish).plan();
}

}  // namespace berth
