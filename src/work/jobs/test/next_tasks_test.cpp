#include "berth/jobs/model/job_tasks.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace berth::next_tasks_test {
namespace {

using namespace jobs::runner;
using TaskStage = KnownJob::TaskStage;

}  // namespace

TEST_CASE("of those that ask for the same one joins the queue, the oldest first") {
  const std::vector<KnownJob> jobs{{1, "one", {TaskStage::over}},
                                   {2, "one", {TaskStage::running}},
                                   {3, "one", {TaskStage::waiting}},
                                   {4, "one", {TaskStage::waiting}},
                                   {5, "two", {TaskStage::waiting}}};
  CHECK(tasks_to_start(jobs) == std::vector<TaskToStart>{{2, 0}, {4, 0}});
}

TEST_CASE("while one of them is in the queue no other joins it") {
  const std::vector<KnownJob> jobs{{1, "one", {TaskStage::waiting}}, {2, "one", {TaskStage::in_queue}}};
  CHECK(tasks_to_start(jobs).empty());
}

TEST_CASE("an array runs no more of its tasks at once than it may, and keeps no other job waiting for that") {
  std::vector<KnownJob> jobs{
      {.number = 1,
       .rivals = "one",
       .tasks = {TaskStage::over, TaskStage::running, TaskStage::waiting, TaskStage::waiting},
       .at_once = 2},
      {.number = 2, .rivals = "one", .tasks = {TaskStage::waiting}}};
  CHECK(tasks_to_start(jobs) == std::vector<TaskToStart>{{0, 2}});
  jobs[0].tasks[2] = TaskStage::running;
  CHECK(tasks_to_start(jobs) == std::vector<TaskToStart>{{1, 0}});
}

TEST_CASE("a job that is held back stands in nobody's way") {
  const std::vector<KnownJob> jobs{
      {.number = 1, .rivals = "one", .tasks = {TaskStage::waiting}, .hold = KnownJob::Hold::conditions},
      {.number = 2, .rivals = "one", .tasks = {TaskStage::waiting}}};
  CHECK(tasks_to_start(jobs) == std::vector<TaskToStart>{{1, 0}});
}

TEST_CASE("the jobs of a tenant have no more GPUs at once than it may have") {
  const auto job = [](std::uint64_t number, std::uint64_t tenant, unsigned gpus, TaskStage task) {
    return KnownJob{.number = number,
                    .rivals = std::to_string(number),
                    .tasks = {task},
                    .tenant = tenant,
                    .tenant_gpus = 3,
                    .gpus = gpus};
  };
  // Two are taken, so that one of one GPU may come, and no other; what is of nobody or of another
  // may.
  const std::vector<KnownJob> jobs{job(1, 7, 1, TaskStage::running), job(2, 7, 1, TaskStage::in_queue),
                                   job(3, 7, 2, TaskStage::waiting), job(4, 7, 1, TaskStage::waiting),
                                   job(5, 7, 1, TaskStage::waiting), job(6, 8, 3, TaskStage::waiting),
                                   job(7, 0, 8, TaskStage::waiting), job(8, 7, 3, TaskStage::over)};
  CHECK(tasks_to_start(jobs) == std::vector<TaskToStart>{{3, 0}, {5, 0}, {6, 0}});
}

TEST_CASE("what tenants that have ended still have counts for the others") {
  const auto job = [](std::uint64_t number, std::uint64_t tenant, TaskStage task, bool gone) {
    return KnownJob{.number = number,
                    .rivals = std::to_string(number),
                    .tasks = {task},
                    .hold = gone ? KnownJob::Hold::tenant_gone : KnownJob::Hold::none,
                    .tenant = tenant,
                    .tenant_gpus = 3};
  };
  std::vector<KnownJob> jobs{job(1, 7, TaskStage::running, true), job(2, 7, TaskStage::left, true),
                             job(3, 8, TaskStage::waiting, false), job(4, 8, TaskStage::waiting, false),
                             job(5, 0, TaskStage::waiting, false)};
  CHECK(tasks_to_start(jobs) == std::vector<TaskToStart>{{2, 0}, {4, 0}});
  jobs[1].tasks = {TaskStage::over};
  CHECK(tasks_to_start(jobs) == std::vector<TaskToStart>{{2, 0}, {3, 0}, {4, 0}});
}

}  // namespace berth::next_tasks_test
