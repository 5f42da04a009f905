#include <doctest/doctest.h>

#include "berth/job/job.h"

namespace berth::job_array_test {

TEST_CASE("indices are ranges and numbers, each once and in order") {
  CHECK(indices_from_text("0-3") == std::vector<unsigned>{0, 1, 2, 3});
  CHECK(indices_from_text("7,1-2,2,9-9") == std::vector<unsigned>{1, 2, 7, 9});
  CHECK(indices_from_text("0-99999")->size() == kMostTasks);
  for (const char* text :
       {"", ",", "1,", "3-1", "-1", "1-", "x", "0-100000", "1000001", "0-99999,100000", "1 2"})
    CHECK_MESSAGE(!indices_from_text(text), text);
}

TEST_CASE("parameters make a task for each combination, the last one changing fastest") {
  Job job;
  job.params = {"lr=0.1,0.01", "seed=1,2,3"};
  REQUIRE(check_array(job));
  CHECK(indices_of(job).size() == 6);
  using Values = std::vector<std::pair<std::string, std::string>>;
  CHECK(params_of(job, 0) == Values{{"lr", "0.1"}, {"seed", "1"}});
  CHECK(params_of(job, 1) == Values{{"lr", "0.1"}, {"seed", "2"}});
  CHECK(params_of(job, 5) == Values{{"lr", "0.01"}, {"seed", "3"}});
  CHECK(tasks_of(12, job).back() == TaskId{12, 5});
  CHECK(tasks_of(12, Job{}) == std::vector<TaskId>{{12, {}}});
}

TEST_CASE("what makes no array is refused") {
  const auto refused = [](std::vector<std::string> params, std::string array = "") {
    Job job;
    job.params = std::move(params);
    job.array = std::move(array);
    return !check_array(job).has_value();
  };
  CHECK(refused({"lr"}));
  CHECK(refused({"lr="}));
  CHECK(refused({"lr=1,,2"}));
  CHECK(refused({"lr=1,2,"}));
  CHECK(refused({"=1"}));
  CHECK(refused({"1lr=1"}));
  CHECK(refused({"index=1"}));
  CHECK(refused({"lr=1", "lr=2"}));
  CHECK(refused({"lr=1"}, "0-3"));
  const std::string hundred =
      "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33";
  CHECK(refused({"a=" + hundred, "b=" + hundred, "c=" + hundred, "d=" + hundred}));
  CHECK(!refused({"a=" + hundred, "b=" + hundred, "c=1,2"}));
}

}  // namespace berth::job_array_test
