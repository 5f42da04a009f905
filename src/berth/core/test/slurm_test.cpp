#include "berth/core/slurm.h"

#include <doctest/doctest.h>

#include <tuple>

namespace berth::slurm_test {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;
using Words = std::vector<std::string>;

Words options_of(const Given& given) {
  const auto wish = wish_from_slurm(given);
  return wish ? wish->options : Words{"refused: " + wish.error().message};
}

TEST_CASE("options of sbatch become those of submit") {
  using Row = std::tuple<const char*, const char*, Words>;
  for (const auto& [name, value, options] : {
           Row{"gres", "gpu", {"--count=1"}},
           Row{"gres", "gpu:2", {"--count=2"}},
           Row{"gres", "gpu:a100", {"--count=1", "--name=a100"}},
           Row{"gpus", "h100:4", {"--count=4", "--name=h100"}},
           Row{"gpus-per-node", "2", {"--count=2"}},
           Row{"time", "30", {"--time=1800s"}},
           Row{"time", "UNLIMITED", {}},
           Row{"array", "0-7:2,9%3", {"--array=0,2,4,6,9%3"}},
           Row{"dependency", "afterok:1:2,afterany:3", {"--after-ok=1,2", "--after=3"}},
           Row{"begin", "now", {}},
           Row{"begin", "now+2hours", {"--at=7200s"}},
           Row{"begin", "22:00", {"--at=22:00"}},
           Row{"begin", "midnight", {"--at=00:00"}},
           Row{"mail-user", "ada@example.org", {}},
           Row{"mail-type", "END", {"--notify=mail", "--notify-on=end,fail"}},
           Row{"mail-type", "NONE", {}},
           Row{"requeue", "", {"--rerun"}},
           Row{"no-requeue", "", {}},
           Row{"comment", "for the paper", {"--note=for the paper"}},
           Row{"job-name", "night", {"--job-name=night"}},
           Row{"nodes", "1", {}},
           Row{"mem", "16G", {}},
       }) {
    CAPTURE(name);
    CAPTURE(value);
    CHECK(options_of({{name, value}}) == options);
  }
  CHECK(options_of({{"mail-type", "FAIL"}, {"mail-user", "ada@example.org"}}) ==
        Words{"--notify=mail:ada@example.org", "--notify-on=fail"});
}

TEST_CASE("what one machine cannot do is refused with its name") {
  using Row = std::pair<const char*, const char*>;
  for (const auto& [name, value] :
       {Row{"gres", "shard:2"}, Row{"gres", "gpu:0"}, Row{"gres", "gpu:a100:1,gpu:h100:1"}, Row{"gpus", ""},
        Row{"gpus", ":2"}, Row{"nodes", "2"}, Row{"nodes", "1-4"}, Row{"ntasks", "8"}, Row{"time", "1h"},
        Row{"array", "0-9:0"}, Row{"array", "x"}, Row{"dependency", "singleton"},
        Row{"dependency", "afterok"}, Row{"dependency", "afterok:1?afterok:2"}, Row{"begin", "2030-01-01"},
        Row{"begin", "now+2moons"}, Row{"mail-type", "STAGE_OUT"}}) {
    CAPTURE(value);
    const auto wish = wish_from_slurm({{name, value}});
    REQUIRE_FALSE(wish);
    CHECK(wish.error().message.starts_with("--" + std::string(name) + " "));
  }
  CHECK_FALSE(wish_from_slurm({{"gpus", "2"}, {"gres", "gpu:1"}}));
  CHECK(wish_from_slurm({{"gpus", "2"}, {"gres", "gpu:2"}}));
}

TEST_CASE("what is not kept is told, and a job for no GPUs gets one") {
  const auto wish = wish_from_slurm({{"mem", "16G"}, {"partition", "gpu"}});
  REQUIRE(wish);
  CHECK(wish->not_kept.size() == 3);
  CHECK(wish_from_slurm({{"gpus", "1"}})->not_kept.empty());
  CHECK(wish_from_slurm({{"gpus", "1"}, {"dependency", "after:4"}})->not_kept.size() == 1);
}

TEST_CASE("times are those of Slurm, whose shortest form is minutes") {
  CHECK(seconds_from_slurm("30") == 1800);
  CHECK(seconds_from_slurm("2:30") == 150);
  CHECK(seconds_from_slurm("1:00:05") == 3605);
  CHECK(seconds_from_slurm("1-12") == 36 * 3600);
  CHECK(seconds_from_slurm("1-0:30") == 24 * 3600 + 1800);
  CHECK(seconds_from_slurm("1-0:0:7") == 24 * 3600 + 7);
  for (const char* wrong : {"", "-", "1-", ":", "1:2:3:4", "2h", "-5", "1.5", "99999999999999999999"})
    CHECK_FALSE(seconds_from_slurm(wrong));
}

TEST_CASE("the name of a file for output may have the job in it") {
  CHECK(filled_slurm_pattern("log/%x-%j-%u%%.out", {12, {}}, "night", "ada") == "log/night-12-ada%.out");
  CHECK(filled_slurm_pattern("%A_%a %j", {12, 3}, "", "") == "12_3 12_3");
  CHECK(check_slurm_pattern("%%n %j"));
  for (const char* wrong : {"%n", "a%", "%4j"}) CHECK_FALSE(check_slurm_pattern(wrong));
}

TEST_CASE("an export says what of the environment a job gets") {
  CHECK(export_from_slurm("ALL,A=1").all);
  const auto some = export_from_slurm("LR,A=1=2");
  CHECK_FALSE(some.all);
  CHECK(some.names == Words{"LR"});
  CHECK(some.values == Words{"A=1=2"});
  CHECK_FALSE(export_from_slurm("NONE").all);
}

}  // namespace
}  // namespace berth::slurm_test
