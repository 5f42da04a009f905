#include "berth/simulate/workload.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <fmt/format.h>

#include <string>

#include "property.h"

namespace berth::workload_test {
namespace {

constexpr Moment kHour = 3600;

std::string fault_of(std::string_view text) {
  const auto workload = workload_from_csv(text, "jobs.csv", 8);
  return workload ? "none" : workload.error().message;
}

std::string fault_in(std::string_view line) {
  return fault_of("arrival,devices,duration,time,user\n0,1,60,,ann\n" + std::string(line));
}

TEST_CASE("a line is a job, and times are as everywhere") {
  const auto workload = workload_from_csv(
      "arrival,devices,duration,time,user\n"
      "0,1,90s,,ann\n"
      "# by hand\n"
      "\n"
      " 1h , 8 , 1.5h , 4h , \"bob\" \r\n"
      "3600,2,2d,3d,",
      "jobs.csv", 8);
  REQUIRE(workload);
  CHECK(workload->devices == 8);
  CHECK(workload->jobs == std::vector<WorkloadJob>{{0, 1, 90, {}, "ann"},
                                                   {kHour, 8, 5400, 4 * kHour, "bob"},
                                                   {kHour, 2, 48 * kHour, 72 * kHour, ""}});
}

TEST_CASE("columns come in any order, and what is not known has none") {
  const auto workload = workload_from_csv(
      "\xef\xbb\xbf"
      "Duration,Arrival,Devices\n60,5,2\n",
      "jobs.csv", 8);
  REQUIRE(workload);
  CHECK(workload->jobs == std::vector<WorkloadJob>{{5, 2, 60, {}, ""}});
}

TEST_CASE("an arrival may be a date") {
  const auto arrival = [](std::string_view text) {
    const auto workload =
        workload_from_csv(fmt::format("arrival,devices,duration\n{},1,60\n", text), "jobs.csv", 8);
    return workload ? workload->jobs[0].arrival : -1;
  };
  CHECK(arrival("1970-01-02") == 24 * kHour);
  CHECK(arrival("2026-11-22T08:20:05") == 1'795'335'605);
  CHECK(arrival("2026-11-22 08:20") == 1'795'335'600);
  CHECK(arrival("2024-02-29") == 1'709'164'800);
  for (const std::string_view wrong : {"2026-02-29", "2026-13-01", "2026-11-22 24:00", "2026-11-22 08:60",
                                       "2026-11-22 08:20:05:01", "2026-11-22 8:20", "2026-11-22x08:20"})
    CHECK(arrival(wrong) == -1);
}

TEST_CASE("what is wrong is told with its line") {
  struct Case {
    std::string_view line, fault;
  };
  constexpr std::string_view kNoTime =
      " is not a time: expected a number and s, m, h or d, like 30s, 4h or 1h30m, or hours:minutes:seconds, "
      "like 4:00:00";
  for (const auto& [line, fault] : {
           Case{"5,1,0,,", "duration: \"0\" must be from 1 s to 3650 d"},
           Case{"5,1,1000000000h,,", "duration: \"1000000000h\" must be from 1 s to 3650 d"},
           Case{"5,1,60,0s,", "time: \"0s\" must be from 1 s to 3650 d"},
           Case{"5,0,60,,", "devices: \"0\" must be a whole number from 1"},
           Case{"5,1.5,60,,", "devices: \"1.5\" must be a whole number from 1"},
           Case{"5,-1,60,,", "devices: \"-1\" must be a whole number from 1"},
           Case{"5,99999999999,60,,", "devices: \"99999999999\" must be a whole number from 1"},
           Case{"5,9,60,,", "devices: it wants 9 of 8; --devices says how many there are"},
           Case{"5,1,60", "it has 3 fields, and the first line 5"},
           Case{"5,1,60,,ann,1", "it has 6 fields, and the first line 5"},
       })
    CHECK(fault_in(line) == fmt::format("jobs.csv:3: {}", fault));
  for (const std::string_view none : {"-60", "nan", "inf", "1e9h", "soon", "60 60", ""})
    CHECK(fault_in(fmt::format("5,1,{},,", none)) ==
          fmt::format("jobs.csv:3: duration: \"{}\"{}", none, kNoTime));
  for (const std::string_view none : {"-5", "nan", "1000000000h", "yesterday"}) {
    CHECK(
        fault_in(fmt::format("{},1,60,,", none)) ==
        fmt::format("jobs.csv:3: arrival: \"{}\" is neither a date like 2026-11-20 14:02:05 nor a number of "
                    "seconds",
                    none));
  }
}

TEST_CASE("jobs that are out of order, a table without a head, and one without jobs") {
  CHECK(fault_in("7,1,60,,\n6,1,60,,") ==
        "jobs.csv:4: arrival: it comes before the job above it; sort the lines by arrival");
  CHECK(fault_of("0,1,60,,ann\n") ==
        "jobs.csv:1: \"0\" is no column; the first line names them: "
        "arrival,devices,duration,time,user,program");
  CHECK(fault_of("arrival,devices\n") ==
        "jobs.csv:1: the column duration is missing; all are: arrival,devices,duration,time,user,program");
  CHECK(fault_of("arrival,devices,arrival\n") == "jobs.csv:1: the column arrival stands there twice");
  for (const std::string_view none : {"", "\n\n", "# nothing\n", "arrival,devices,duration\n"})
    CHECK(fault_of(none) == "jobs.csv: it has no jobs");
}

TEST_CASE("any text is jobs in order or a fault") {
  CHECK(rc::check([](const std::string& text) {
    const auto workload = workload_from_csv("arrival,devices,duration,time\n" + text, "jobs.csv", 3);
    if (!workload) RC_ASSERT(workload.error().message.starts_with("jobs.csv:"));
  }));
  holds_for_any([] {
    const auto cell = [] {
      return *rc::gen::element<std::string>("0", "1", "2", "90", "1h", "2026-01-01", "", "-1", "nan", "x");
    };
    std::string text = "arrival,devices,duration,time\n";
    const auto lines = *rc::gen::inRange(1, 4);
    for (int line = 0; line < lines; ++line)
      text += fmt::format("{},{},{},{}\n", cell(), cell(), cell(), cell());
    const auto workload = workload_from_csv(text, "jobs.csv", 2);
    if (!workload) return;
    Moment last = 0;
    for (const WorkloadJob& job : workload->jobs) {
      RC_ASSERT(job.arrival >= last && job.devices >= 1 && job.devices <= 2 && job.duration >= 1);
      last = job.arrival;
    }
    for (const Grant& grant : replay(*workload, {}).grants) RC_ASSERT(grant.at != kNever);
  });
}

}  // namespace
}  // namespace berth::workload_test
