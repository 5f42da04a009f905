#include "berth/jobs/model/runner_step.h"

#include <doctest/doctest.h>

#include "berth/job/edit_plan.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/test/runner_office.h"

namespace berth::runner_test::runner_step_test {

TEST_CASE("of jobs that ask for the same one is in the queue, and the next when its command begins") {
  Office office;
  CHECK(office.job(1).job(2).job(3, [](Job& job) { job.rivals = "other"; }).begins().lately() ==
        "starts 1; starts 3");
  CHECK(office.wakes().lately().empty());
  CHECK(office.starts(task(1)).wakes().lately() == "starts 2");
  CHECK(office.sleeps_ms == 0);
}

TEST_CASE("a runner without work lets another be the runner, looks once more, and leaves") {
  Office office;
  CHECK(office.begins().lately() == "lets go; leaves");
  office.job(1).begins().starts(task(1));
  // What runs needs no runner.
  CHECK(office.wakes().lately() == "starts 1; lets go; leaves");
}

TEST_CASE("a job that was left to a runner which was about to leave is started") {
  Office office;
  office.on_let_go = [&] { office.job(1); };
  CHECK(office.begins().lately() == "lets go; starts 1");
  // The same where another has become the runner meanwhile, which starts it.
  Office other;
  other.on_let_go = [&] {
    other.job(1);
    other.is_runner_there = true;
  };
  CHECK(other.begins().lately() == "lets go; leaves to another");
}

TEST_CASE("one that is over and is retried as the runner is about to leave is started") {
  Office office;
  office.job(1).begins().starts(task(1)).ends(task(1), 3).begins();
  office.lately();
  const auto retry = [&] {
    office.files[task(1)].push_back(wrote(TaskEventKind::again));
    // Its user sees the lock of the runner, or has seen it.
    office.rung_unread = true;
  };
  office.on_let_go = retry;
  CHECK(office.begins().lately() == "lets go; starts 1");
  // The same where another has become the runner meanwhile: it reads all jobs.
  office.starts(task(1)).ends(task(1), 3);
  office.on_let_go = [&] {
    retry();
    office.is_runner_there = true;
  };
  office.wakes();
  CHECK(office.lately() == "lets go; leaves to another");
}

TEST_CASE("a runner that goes on reads what was over, since another may have heard of it and been killed") {
  Office office;
  office.job(1).begins().starts(task(1)).ends(task(1), 3).begins();
  office.lately();
  office.on_let_go = [&] {
    office.files[task(1)].push_back(wrote(TaskEventKind::again));
    office.job(2, [](Job& job) { job.rivals = "other"; });
  };
  CHECK(office.begins().lately() == "lets go; starts 1; starts 2");
}

TEST_CASE("what was over is not read again as the runner leaves, where nobody has rung") {
  Office office;
  int reads = 0;
  office.job(1).begins().starts(task(1)).ends(task(1)).wakes();
  office.on_read = [&](std::uint64_t) { ++reads; };
  CHECK(office.begins().left);
  CHECK(reads == 1);
}

TEST_CASE("a job that is still over is not read, and what comes after it begins") {
  Office office;
  int reads = 0;
  office.job(1).starts(task(1)).ends(task(1));
  office.job(2, [](Job& job) { job.after_ok = {1}; });
  office.still_over = {1};
  office.on_read = [&](std::uint64_t number) { reads += number == 1 ? 1 : 0; };
  CHECK(office.begins().lately() == "starts 2");
  CHECK(reads == 0);
  // Its user has it run again: its files are others now.
  office.still_over.clear();
  CHECK(office.again(task(1)).runs().lately() == "");
  CHECK(office.starts(task(2)).runs().lately() == "starts 1");
}

TEST_CASE("a job that cannot be read now is read again later, and keeps the runner until then") {
  Office office;
  office.job(1).unreadable = {1};
  CHECK(office.begins().lately().empty());
  CHECK(office.asleep);
  CHECK(office.sleeps_ms == 200);
  CHECK(office.passes(200ms).wakes().sleeps_ms == 400);
  office.unreadable.clear();
  CHECK(office.passes(400ms).wakes().lately() == "starts 1");
  // The pauses begin anew.
  office.unreadable = {1};
  CHECK(office.told(Overheard{}).wakes().sleeps_ms == 200);
  office.starts(task(1));
  // It was in the queue when it was read last, and is not started once more.
  CHECK(office.passes(200ms).wakes().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(60s).wakes().lately() == "lets go; leaves");
}

TEST_CASE("a job that was removed while it could not be read keeps no runner") {
  Office office;
  office.job(1).unreadable = {1};
  CHECK(office.begins().asleep);
  office.jobs.clear();
  office.unreadable.clear();
  CHECK(office.passes(200ms).wakes().lately() == "lets go; leaves");
}

TEST_CASE("what comes after a job that cannot be read now waits, and is not given up") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after = {1}; }).job(3, [](Job& job) { job.after_ok = {1}; });
  office.unreadable = {1};
  CHECK(office.begins().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(1s).wakes().lately() == "starts 1");
  office.starts(task(1)).wakes();
  office.ends(task(1));
  // It is asked how it ended, and cannot tell.
  office.on_read = [&](std::uint64_t number) {
    if (number == 1) office.unreadable = {1};
  };
  office.wakes();
  CHECK(office.lately() == "tells the end of 1; starts 2");
  CHECK(office.starts(task(2)).wakes().lately().empty());
  CHECK(office.asleep);
  office.on_read = {};
  office.unreadable.clear();
  CHECK(office.passes(1s).wakes().lately() == "starts 3");
}

TEST_CASE("while a job cannot be read no singleton starts, since it may have its name") {
  Office office;
  const auto named = [](Job& job) {
    job.name = "sync";
    job.singleton = true;
  };
  office.job(1, named).job(2, named).unreadable = {1};
  CHECK(office.begins().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(1s).wakes().lately() == "starts 1");
}

TEST_CASE("while a job is unread nothing starts that may be its rival, but for a while only") {
  Office office;
  const auto of_tenant = [](Job& job) {
    job.rivals = "other";
    job.tenant = 7;
    job.tenant_gpus = 1;
  };
  office.tenants = {7};
  office.job(1).job(2).job(3, of_tenant).job(4, of_tenant).begins();
  CHECK(office.lately() == "starts 1; starts 3");
  // The next runner cannot read what is in the queue.
  office.unreadable = {1, 3};
  CHECK(office.begins().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(1s).wakes().lately() == "watches 1; watches 3");
  CHECK(office.starts(task(1)).wakes().lately() == "starts 2");
  // Of a program no job starts that might be too much.
  office.unreadable = {2, 3};
  office.begins();
  CHECK(office.job(5).rings(task(5)).wakes().lately() == "watches 1");
  for (const SteadyTime pause : {200ms, 400ms, 800ms}) CHECK(office.passes(pause).wakes().lately().empty());
  CHECK(office.passes(1600ms).wakes().lately() == "starts 5");
  CHECK(office.passes(60s).wakes().lately().empty());
}

TEST_CASE("a job that was read before and cannot be read now is not started") {
  Office office;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  office.unreadable = {2};
  office.rings(task(2)).wakes();
  CHECK(office.starts(task(1)).wakes().lately().empty());
  office.unreadable.clear();
  CHECK(office.passes(200ms).wakes().lately() == "starts 2");
}

TEST_CASE("a spool that cannot be listed now is listed again later, and keeps the runner until then") {
  Office office;
  office.job(1).unlistable = true;
  CHECK(office.begins().lately().empty());
  CHECK(office.asleep);
  CHECK(office.sleeps_ms == 200);
  CHECK(office.passes(200ms).wakes().sleeps_ms == 400);
  office.unlistable = false;
  CHECK(office.passes(400ms).wakes().lately() == "starts 1");
  // Its last look fails, and it is the runner again.
  office.starts(task(1));
  office.on_let_go = [&] {
    office.job(2);
    office.unlistable = true;
  };
  CHECK(office.wakes().lately() == "lets go");
  CHECK(office.asleep);
  office.unlistable = false;
  CHECK(office.passes(1s).wakes().lately() == "starts 2");
}

TEST_CASE("what comes due while the runner works is not slept over") {
  State state{.stage = Works{}};
  state.unlisted = Backoff{.until = 1000ms, .length = 200ms};
  state = next(std::move(state), {.now = 999ms, .what = jobs::runner::Woken{}}).state;
  CHECK(next(state, {.now = 1001ms, .what = Settled{}}).actions == std::vector<Action>{Sleep{1001ms}});
  state.unlisted.reset();
  state.unread[1] = Backoff{.until = 1000ms, .length = 200ms};
  CHECK(next(state, {.now = 1001ms, .what = Settled{}}).actions == std::vector<Action>{Sleep{1001ms}});
}

TEST_CASE("while the spool cannot be listed, nothing begins, and no condition counts as met") {
  Office office;
  const auto single = [](Job& job) {
    job.name = "sync";
    job.singleton = true;
  };
  office.job(1, single).job(2, [](Job& job) { job.after = {1}; }).job(3, single).job(4);
  office.unlistable = true;
  office.begins();
  for (const std::uint64_t number : {2, 3, 4}) office.rings(task(number));
  CHECK(office.runs().lately().empty());
  office.unlistable = false;
  CHECK(office.passes(1s).wakes().lately() == "starts 1");
  CHECK(office.starts(task(1)).wakes().lately() == "starts 4");
}

TEST_CASE("what an earlier runner has started is watched, and not started again") {
  Office office;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  CHECK(office.begins().lately() == "watches 1");
  CHECK(office.starts(task(1)).ends(task(1)).wakes().lately() == "tells the end of 1; starts 2");
}

TEST_CASE("one that was killed in the queue gets into it again after a pause, which doubles") {
  Office office;
  office.job(1, [](Job& job) { job.rerun = true; }).begins();
  CHECK(office.dies(task(1)).wakes().lately() == "starts 1");
  CHECK(office.sleeps_ms == 200);
  CHECK(office.passes(199ms).wakes().lately().empty());
  CHECK(office.passes(1ms).wakes().lately() == "starts 1");
  CHECK(office.dies(task(1)).wakes().sleeps_ms == 400);
  CHECK(office.passes(400ms).wakes().lately() == "starts 1");
  for (int i = 0; i < 20; ++i) office.dies(task(1)).wakes().passes(60s).wakes();
  CHECK(office.dies(task(1)).wakes().sleeps_ms == 60'000);
  // Once one has started, the pauses begin anew.
  office.passes(60s).wakes().starts(task(1)).wakes().job(2).rings(task(2)).wakes();
  CHECK(office.dies(task(2)).wakes().sleeps_ms == 200);
}

TEST_CASE("one that has given way gets into the queue again at once, but only once until it starts") {
  Office office;
  office.takes_at_once = false;
  // Beside a job that waits for another, so that the runner stays.
  office.job(1).job(2, [](Job& job) { job.after = {1}; }).begins().takes(task(1)).starts(task(1)).wakes();
  CHECK(office.gives_way(task(1)).wakes().lately() == "starts 1; starts 1");
  CHECK(office.dies(task(1)).wakes().sleeps_ms == 200);
  CHECK(office.passes(200ms).wakes().lately() == "starts 1");
  CHECK(office.takes(task(1)).starts(task(1)).wakes().gives_way(task(1)).wakes().lately() == "starts 1");
}

TEST_CASE("one that cannot begin holds up no other, but if three cannot, all that ask for the same wait") {
  Office office;
  for (const std::uint64_t number : {1U, 2U, 3U, 4U}) office.job(number);
  CHECK(office.begins().dies(task(1)).wakes().lately() == "starts 1; starts 2");
  CHECK(office.dies(task(2)).wakes().lately() == "starts 3");
  CHECK(office.dies(task(3)).wakes().lately().empty());
  CHECK(office.passes(200ms).wakes().lately() == "starts 1");
}

TEST_CASE("those that could not begin no longer count once they are over or ask for something else") {
  for (const bool are_edited : {false, true}) {
    Office office;
    for (const std::uint64_t number : {1U, 2U, 3U, 4U, 5U, 6U}) office.job(number);
    office.begins().dies(task(1)).wakes().dies(task(2)).wakes();
    CHECK(office.lately() == "starts 1; starts 2; starts 3");
    for (const std::uint64_t number : {1U, 2U}) {
      if (are_edited) {
        office.jobs[number].rivals = "other";
        office.rings(task(number));
      } else {
        office.cancelled(task(number));
      }
    }
    office.wakes().lately();
    CHECK(office.state.failures.empty());
    CHECK(office.state.pauses.empty());
    // The third that could not is the first of those that are left.
    CHECK(office.dies(task(3)).wakes().lately() == "starts 4");
  }
}

TEST_CASE("tasks that fail at the same moment, and are to run again, wait no longer than one") {
  Office array;
  array.job(1, [](Job& job) {
    job.array = "0-7";
    job.rerun = true;
  });
  array.begins();
  for (unsigned index = 0; index < 8; ++index) array.starts({1, index}).wakes();
  for (unsigned index = 0; index < 8; ++index) array.fails_and_is_retried({1, index}, Alive::nothing);
  array.lately();
  CHECK(array.wakes().sleeps_ms == 200);
  CHECK(array.passes(200ms).wakes().lately() == "starts 1.0");

  Office jobs;
  for (std::uint64_t number = 1; number <= 8; ++number) jobs.job(number, [](Job& job) { job.rerun = true; });
  jobs.begins();
  for (std::uint64_t number = 1; number <= 8; ++number) jobs.starts(task(number)).wakes();
  for (std::uint64_t number = 1; number <= 8; ++number)
    jobs.fails_and_is_retried(task(number), Alive::nothing);
  jobs.lately();
  CHECK(jobs.wakes().sleeps_ms == 200);
  CHECK(jobs.passes(200ms).wakes().lately() == "starts 1");
}

TEST_CASE("one whose process was started and has not taken it yet is not started again") {
  Office office;
  office.takes_at_once = false;
  CHECK(office.job(1).begins().rings(task(1)).wakes().lately() == "starts 1");
  CHECK(office.told(Overheard{}).wakes().lately().empty());
}

TEST_CASE("why no process could be started is written once") {
  Office office;
  office.spawns = false;
  CHECK(office.job(1).begins().lately() == "puts off 1: no memory");
  CHECK(office.passes(1s).wakes().lately().empty());
  office.spawns = true;
  CHECK(office.passes(1s).wakes().lately() == "starts 1");
}

TEST_CASE("a child whose task was cancelled before it could say who it is gets SIGTERM") {
  Office office;
  office.job(1).begins();
  CHECK(office.cancelled(task(1)).wakes().lately() ==
        "starts 1; SIGTERM to 1; tells the end of 1; lets go; leaves");
}

TEST_CASE("what a killed run has left behind is looked at again and again, and killed where it is to end") {
  Office office;
  office.job(1, [](Job& job) { job.rerun = true; }).begins().starts(task(1)).wakes();
  CHECK(office.dies(task(1), Alive::rest).wakes().sleeps_ms == 20);
  CHECK(office.cancelled(task(1)).wakes().lately() == "starts 1");
  office.overdue = true;
  CHECK(office.passes(5s).wakes().lately() == "kills what is left of 1");
  CHECK(office.passes(5s).wakes().lately() == "tells the end of 1; lets go; leaves");
}

TEST_CASE("what has the lock of a task a moment longer than its process is looked at ever less often") {
  Office office;
  office.job(1, [](Job& job) { job.rerun = true; }).begins().starts(task(1)).wakes();
  office.job(2, [](Job& job) { job.rivals = "other"; }).rings(task(2)).wakes();
  CHECK(office.lately() == "starts 1; starts 2");
  CHECK(office.fails_and_is_retried(task(1), Alive::rest).wakes().sleeps_ms == 20);
  // News of other tasks changes nothing of when it is looked at.
  CHECK(office.passes(5ms).rings(task(2)).wakes().sleeps_ms == 15);
  CHECK(office.passes(15ms).wakes().sleeps_ms == 40);
  for (int looks = 0; looks < 10; ++looks) office.passes(std::chrono::milliseconds(office.sleeps_ms)).wakes();
  CHECK(office.sleeps_ms == 5000);
  // A task that is retried after that is looked at soon.
  office.job(3, [](Job& job) { job.rivals = "third"; }).rings(task(3)).wakes().starts(task(3)).wakes();
  CHECK(office.lately() == "starts 3");
  CHECK(office.fails_and_is_retried(task(3), Alive::rest).wakes().sleeps_ms == 20);
  office.alive[task(3)] = Alive::nothing;
  CHECK(office.passes(20ms).wakes().lately() == "starts 3");
  office.alive[task(1)] = Alive::nothing;
  CHECK(office.passes(5s).wakes().lately() == "starts 1");
}

TEST_CASE("what is looked at again is not looked at without end while its job cannot be read or is gone") {
  Office office;
  office.job(1, [](Job& job) { job.rerun = true; }).begins().starts(task(1)).wakes();
  office.dies(task(1), Alive::rest).wakes();
  office.unreadable = {1};
  CHECK(office.rings(task(1)).passes(20ms).wakes().sleeps_ms == 40);
  office.unreadable.clear();
  office.job(2).rings(task(2)).jobs.erase(1);
  CHECK(office.passes(60s).wakes().sleeps_ms == 0);
  CHECK(office.asleep);
}

TEST_CASE("a job waits for those that it comes after, and is cancelled if one did not end as it asks") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after = {1}; });
  office.job(3, [](Job& job) { job.after_ok = {1}; });
  CHECK(office.begins().starts(task(1)).wakes().lately() == "starts 1");
  CHECK(office.ends(task(1), 3).wakes().lately() ==
        "tells the end of 1; gives up 3 for 1; tells the end of 3; starts 2");

  Office well;
  well.job(1).job(2, [](Job& job) { job.after_ok = {1}; });
  well.begins().starts(task(1)).ends(task(1)).wakes();
  CHECK(well.lately() == "starts 1; tells the end of 1; starts 2");
}

TEST_CASE("a runner whose last job is given up, as the one before it failed, has nothing left and leaves") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after_ok = {1}; }).begins().starts(task(1)).wakes();
  CHECK(office.lately() == "starts 1");
  CHECK(office.ends(task(1), 3).wakes().lately() ==
        "tells the end of 1; gives up 2 for 1; tells the end of 2; lets go; leaves");
}

TEST_CASE("one that is to be given up never starts, though the disk does not take that") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after_ok = {1}; });
  office.writes = false;
  office.begins().starts(task(1)).ends(task(1), 3).wakes();
  CHECK(office.lately() == "starts 1; tells the end of 1; gives up 2 for 1");
  CHECK(office.sleeps_ms == 60'000);
  CHECK(office.passes(60s).wakes().lately() == "gives up 2 for 1");
  office.writes = true;
  CHECK(office.passes(60s).wakes().lately() == "gives up 2 for 1; tells the end of 2; lets go; leaves");
}

TEST_CASE("a job does not start before its time, by the clock of the wall, which may be set") {
  Office office;
  office.job(1, [&](Job& job) { job.not_before_s = office.wall_s + 90; });
  CHECK(office.begins().lately().empty());
  CHECK(office.sleeps_ms == 60'000);
  CHECK(office.passes(60s).wakes().lately().empty());
  CHECK(office.sleeps_ms == 30'000);
  office.wall_s += 3600;
  CHECK(office.wakes().lately() == "starts 1");
}

TEST_CASE("when a tenant has gone, what waits is cancelled at once, and what runs after its grace") {
  Office office;
  office.tenants = {7};
  const auto of_tenant = [](Job& job) {
    job.tenant = 7;
    job.tenant_gpus = 8;
    job.tenant_grace_s = 10;
  };
  office.job(1, of_tenant).job(2, of_tenant).job(3, of_tenant).begins().starts(task(1)).wakes();
  CHECK(office.lately() == "starts 1; starts 2");
  CHECK(office.sleeps_ms == 1000);
  office.tenants.clear();
  CHECK(office.passes(1s).wakes().lately() == "cancels 2; cancels 3; tells the end of 2; tells the end of 3");
  CHECK(office.passes(9s).wakes().lately().empty());
  CHECK(office.passes(1s).wakes().lately() == "cancels 1; tells the end of 1; lets go; leaves");
}

TEST_CASE("when a tenant has gone, a task whose start is not heard of yet has its grace as well") {
  Office office;
  office.tenants = {7};
  office.job(1, [](Job& job) {
    job.tenant = 7;
    job.tenant_gpus = 8;
    job.tenant_grace_s = 10;
  });
  office.begins().files[task(1)].push_back(wrote(TaskEventKind::started));
  office.tenants.clear();
  CHECK(office.wakes().lately() == "starts 1");
  CHECK(office.passes(10s).wakes().lately().starts_with("cancels 1"));
}

TEST_CASE(
    "of an array whose tenant has gone, what is in the queue is cancelled, and what runs has its grace") {
  Office office;
  office.job(1, [](Job& job) {
    job.array = "0-2";
    job.tenant = 7;
    job.tenant_gpus = 8;
    job.tenant_grace_s = 10;
  });
  office.tenants = {7};
  office.begins().starts({1, 0}).wakes();
  CHECK(office.lately() == "starts 1.0; starts 1.1");
  office.tenants.clear();
  CHECK(office.wakes().lately() == "cancels 1.1");
  CHECK(office.passes(10s).wakes().lately().starts_with("cancels 1"));
  CHECK(office.left);
}

TEST_CASE("a job that somebody wants to be told of, or that is run again, keeps a runner while it runs") {
  for (const auto& is_so : std::vector<std::function<void(Job&)>>{
           [](Job& job) { job.notify.targets = {"mail:bob"}; }, [](Job& job) { job.rerun = true; }}) {
    Office office;
    office.job(1, is_so).begins().starts(task(1)).wakes();
    CHECK(office.asleep);
    CHECK(office.ends(task(1)).wakes().lately().ends_with("leaves"));
  }
}

TEST_CASE("news that was lost is made good by reading all") {
  Office office;
  office.job(1).begins();
  CHECK(office.job(2, [](Job& job) { job.rivals = "other"; }).wakes().lately() == "starts 1");
  CHECK(office.told(Overheard{}).wakes().lately() == "starts 2");
}

TEST_CASE(
    "a job that is gone, or that cannot be read, is left alone, and its user may retry one that is over") {
  Office office;
  office.job(1).begins().starts(task(1)).job(2).rings(task(2)).wakes();
  CHECK(office.lately() == "starts 1; starts 2");
  office.jobs.erase(1);
  CHECK(office.rings(task(9)).rings(task(1)).wakes().asleep);
  office.ends(task(2), 3).wakes();
  CHECK(office.lately().ends_with("leaves"));
  office.begins();
  office.files[task(2)].push_back(wrote(TaskEventKind::again));
  CHECK(office.begins().lately().ends_with("starts 2"));
}

TEST_CASE("a task of an array that is cancelled is passed, and the others start") {
  Office office;
  office.job(1, [](Job& job) { job.array = "0-2"; }).begins();
  CHECK(office.cancelled({1, 1}).wakes().lately() == "starts 1.0");
  CHECK(office.starts({1, 0}).wakes().lately() == "starts 1.2");
}

TEST_CASE("a held job is not started, and holds up no other") {
  Office office;
  office.job(1).job(2).held(task(1));
  CHECK(office.begins().lately() == "starts 2");
  office.starts(task(2)).wakes();
  // For a job that is held nobody has to stay.
  CHECK(office.lately() == "lets go; leaves");
  CHECK(office.let_go(task(1)).begins().lately() == "watches 2; starts 1");
}

TEST_CASE("a job that is held while it is in the queue leaves it, and the next one joins") {
  Office office;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  CHECK(office.held(task(1)).wakes().lately() == "SIGTERM to 1; starts 2");
  CHECK(office.let_go(task(1)).wakes().lately().empty());
  CHECK(office.starts(task(2)).wakes().lately() == "starts 1");
}

TEST_CASE("jobs with the same request start in the order of their positions") {
  Office office;
  office.job(1).job(2).job(3).begins();
  CHECK(office.lately() == "starts 1");
  office.moved(task(3), position_between(position_of(1, ""), position_of(2, ""))).wakes();
  CHECK(office.starts(task(1)).wakes().lately() == "starts 3");
  CHECK(office.starts(task(3)).wakes().lately() == "starts 2");
}

TEST_CASE("a process that goes on with another task is no longer that of the first") {
  Office office;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  office.held(task(1), task(2)).wakes();
  CHECK(office.lately().empty());
  CHECK(office.hands_on(task(1), task(2)).wakes().lately() == "watches 2; lets be 1; lets go; leaves");
  office.let_go(task(1)).begins();
  CHECK(office.lately() == "watches 2; starts 1");
  office.ends(task(2)).starts(task(1)).wakes();
  CHECK(office.standing(task(1)).phase == TaskPhase::running);
}

TEST_CASE(
    "if something has the lock of a task that was handed on a moment longer, no other waits for its end") {
  Office office;
  office.job(1).job(2).job(3).begins();
  CHECK(office.lately() == "starts 1");
  office.hands_on(task(1), task(2), Alive::rest).wakes();
  CHECK(office.lately() == "watches 2; lets be 1");
  CHECK(office.sleeps_ms == 20);
  office.alive[task(1)] = Alive::nothing;
  CHECK(office.passes(20ms).wakes().lately() == "starts 1");
}

TEST_CASE("a task that another process has is not put off, though what was started for it has ended") {
  Office office;
  office.takes_at_once = false;
  office.job(1).job(2).begins();
  CHECK(office.lately() == "starts 1");
  TaskStanding locked;
  locked.in_queue = true;
  office.alive[task(1)] = Alive::rest;
  CHECK(office.told(ProcessEnded{task(1), locked}).wakes().lately().empty());
  office.alive[task(1)] = Alive::nothing;
  CHECK(office.passes(20ms).wakes().lately() == "starts 1");
}

TEST_CASE("a job that is to run after a failure is cancelled where there was none") {
  Office office;
  office.job(1).job(2, [](Job& job) { job.after_fail = {1}; }).job(3, [](Job& job) { job.after_fail = {1}; });
  office.begins();
  CHECK(office.lately() == "starts 1");
  office.starts(task(1)).wakes();
  CHECK(
      office.ends(task(1)).wakes().lately() ==
      "tells the end of 1; gives up 2 for 1, which ended well; gives up 3 for 1, which ended well; tells the "
      "end of 2; tells the end of 3; lets go; leaves");
  Office other;
  other.job(1).job(2, [](Job& job) { job.after_fail = {1}; }).begins();
  other.starts(task(1)).wakes();
  CHECK(other.ends(task(1), 3).wakes().lately() == "starts 1; tells the end of 1; starts 2");
}

TEST_CASE("of the singletons of a name one is at work at a time, in the order of their numbers") {
  Office office;
  const auto named = [](Job& job) {
    job.name = "sync";
    job.singleton = true;
    job.rivals = std::to_string(job.words.size());
  };
  office.job(1, named).job(2, named).job(3, [](Job& job) { job.rivals = "x"; });
  office.jobs[2].rivals = "other";
  CHECK(office.begins().lately() == "starts 1; starts 3");
  CHECK(office.starts(task(1)).wakes().lately().empty());
  CHECK(office.ends(task(1)).wakes().lately() == "tells the end of 1; starts 2");
}

}  // namespace berth::runner_test::runner_step_test
