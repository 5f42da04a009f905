#include "berth/jobs/model/runner_step.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "berth/job/task_standing.h"
#include "berth/jobs/test/runner_office.h"
#include "property.h"

namespace berth::runner_test::runner_random_test {

namespace {

// After 0.2, 0.4, 0.8 and 1.6 s.
constexpr int kTriesThatHoldUp = 4;

/// Jobs of all kinds, whose tasks and whose runner meet anything.
class BusyDays {
 public:
  void go() {
    const int jobs = 1 + below(6);
    for (int i = 1; i <= jobs; ++i) add(static_cast<std::uint64_t>(i));
    office_.tenants = {1};
    office_.on_spawn = [this](TaskId id) { check_spawn(id); };
    office_.begins();
    const int steps = below(60);
    for (int i = 0; i < steps; ++i) anything();
    // From now on nothing goes wrong, and all that starts ends.
    office_.spawns = office_.takes_at_once = office_.writes = office_.overdue = true;
    office_.unlistable = false;
    office_.unreadable.clear();
    office_.tenants.clear();
    for (int i = 0; i < 200 && !is_all_over(); ++i) {
      for (auto& [id, alive] : office_.alive) {
        if (alive == Alive::run && office_.standing(id).phase == TaskPhase::waiting) office_.starts(id);
        if (alive == Alive::run)
          office_.ends(id);
        else if (alive != Alive::nothing)
          office_.dies(id);
      }
      office_.passes(60s);
      // Each job that starts or ends makes sure that there is one.
      if (office_.left)
        office_.begins();
      else
        office_.wakes();
    }
    RC_ASSERT(is_all_over());
    // By then it has tried again whatever it could not read.
    RC_ASSERT(office_.passes(60s).wakes().left);
  }

 private:
  static int below(int end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); }
  static bool one_in(int count) { return below(count) == 0; }

  void add(std::uint64_t number) {
    office_.job(number, [&](Job& job) {
      job.rivals = one_in(2) ? "some" : "others";
      if (one_in(3)) job.array = "0-3";
      if (one_in(4)) job.at_once = 1;
      if (number > 1 && one_in(3))
        job.after = {1 + static_cast<std::uint64_t>(below(static_cast<int>(number) - 1))};
      if (number > 1 && one_in(3))
        job.after_ok = {1 + static_cast<std::uint64_t>(below(static_cast<int>(number) - 1))};
      if (one_in(4)) job.not_before_s = office_.wall_s + below(200);
      job.rerun = one_in(3);
      if (!one_in(3)) return;
      job.tenant = static_cast<std::uint64_t>(1 + below(2));
      job.tenant_gpus = 2;
      job.tenant_grace_s = below(20);
    });
  }

  void anything() {
    auto place = office_.files.begin();
    std::advance(place, below(static_cast<int>(office_.files.size())));
    const TaskId id = place->first;
    const Alive alive = office_.alive[id];
    const TaskPhase phase = office_.standing(id).phase;
    switch (below(11)) {
      case 0:
        if (alive == Alive::run && phase == TaskPhase::waiting) office_.starts(id);
        break;
      case 1:
        if (alive == Alive::run && phase == TaskPhase::running) office_.ends(id, below(2));
        break;
      case 2:
        if (alive == Alive::run)
          office_.dies(id, phase == TaskPhase::running && one_in(2) ? Alive::rest : Alive::nothing);
        break;
      case 3:
        if (alive == Alive::rest || (alive == Alive::young && one_in(3)))
          office_.dies(id);
        else if (alive == Alive::young && phase == TaskPhase::waiting)
          office_.takes(id);
        break;
      case 4:
        if (one_in(3)) office_.cancelled(id);
        break;
      case 5:
        if (one_in(3)) office_.begins();
        return;
      case 6:
        office_.spawns = one_in(2);
        office_.unlistable = one_in(4);
        break;
      case 7:
        office_.writes = one_in(2);
        office_.takes_at_once = one_in(2);
        break;
      case 8:
        if (one_in(4)) office_.tenants.clear();
        office_.overdue = one_in(2);
        break;
      case 9:
        if (office_.unreadable.erase(id.job) == 0 && one_in(2)) office_.unreadable.insert(id.job);
        break;
      default:
        office_.passes(std::chrono::milliseconds(below(20'000)));
        break;
    }
    if (!one_in(3)) return;
    if (office_.left)
      office_.begins();
    else
      office_.wakes();
  }

  void check_spawn(TaskId id) {
    // Nobody has it, nothing of it lives, and it waits.
    RC_ASSERT(office_.alive[id] == Alive::nothing);
    RC_ASSERT(office_.standing(id).phase == TaskPhase::waiting);
    const Job& job = office_.jobs.at(id.job);
    RC_ASSERT(office_.wall_s >= job.not_before_s.value_or(0));
    RC_ASSERT(job.tenant == 0 || office_.state.gone.count(job.tenant) == 0);
    for (const std::uint64_t other : job.after) RC_ASSERT(is_over_now(other));
    for (const std::uint64_t other : job.after_ok) {
      const auto of_other = office_.standings(other);
      RC_ASSERT(counts_of(of_other).done == of_other.size());
    }
    int busy = 0;
    int of_tenant = 1;
    for (const auto& [each, events] : office_.files) {
      const TaskStanding standing = office_.standing(each);
      // A job that stays unreadable holds up its rivals for the first tries only.
      if (each != id && standing.in_queue && office_.tries(each.job) <= kTriesThatHoldUp)
        RC_ASSERT(office_.jobs.at(each.job).rivals != job.rivals);
      const bool is_busy = standing.in_queue || standing.phase == TaskPhase::running;
      busy += each.job == id.job && is_busy ? 1 : 0;
      of_tenant += job.tenant != 0 && office_.jobs.at(each.job).tenant == job.tenant && is_busy ? 1 : 0;
    }
    RC_ASSERT(job.at_once == 0 || busy < static_cast<int>(job.at_once));
    RC_ASSERT(job.tenant == 0 || of_tenant <= static_cast<int>(job.tenant_gpus));
  }

  bool is_over_now(std::uint64_t number) const {
    return std::ranges::all_of(office_.standings(number),
                               [](const TaskStanding& each) { return is_over(each); });
  }
  bool is_all_over() const {
    return std::ranges::all_of(office_.jobs, [this](const auto& each) { return is_over_now(each.first); });
  }

  Office office_{};
};

}  // namespace

TEST_CASE("whatever happens to tasks, tenants and runners, no job starts out of its turn and none is left") {
  holds_for_any("any days", [] { BusyDays().go(); });
}

}  // namespace berth::runner_test::runner_random_test
