#include "berth/slurm/sbatch_options.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace berth::slurm_values_test {
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
           Row{"time", "30", {"--time=30m"}},
           Row{"time", "UNLIMITED", {}},
           Row{"array", "0-7:2,9%3", {"--array=0,2,4,6,9%3"}},
           Row{"dependency", "afterok:1:2,afterany:3", {"--after-ok=1,2", "--after=3"}},
           Row{"dependency", "afternotok:1,singleton", {"--after-fail=1", "--singleton"}},
           Row{"begin", "now", {}},
           Row{"begin", "now+2hours", {"--at=2h"}},
           Row{"begin", "now+0", {}},
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
        Row{"array", "0-9:0"}, Row{"array", "x"}, Row{"dependency", "expand:1"}, Row{"dependency", "afterok"},
        Row{"dependency", "afterok:1?afterok:2"}, Row{"begin", "2030-01-01"}, Row{"begin", "now+2moons"},
        Row{"mail-type", "STAGE_OUT"}, Row{"output", "%n"}}) {
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

TEST_CASE("each option of Slurm's is in the table once, and is taken over, told or refused") {
  for (const SlurmOption& each : slurm_options()) {
    CAPTURE(each.name);
    CHECK(std::ranges::count(slurm_options(), each.name, &SlurmOption::name) == 1);
    CHECK((each.letter == 0 || std::ranges::count(slurm_options(), each.letter, &SlurmOption::letter) == 1));
    CHECK_FALSE(each.help.empty());
    // Berth runs no job again unless it is asked to, so this one says what is so anyway.
    const bool is_taken = each.reader.index() != 0 || each.name == "no-requeue";
    if (each.use == SlurmUse::kept) CHECK(is_taken);
    if (each.use == SlurmUse::refused) CHECK_FALSE(is_taken);
    if (each.use != SlurmUse::not_kept) continue;
    const auto wish = wish_from_slurm({{"gpus", "1"}, {std::string(each.name), "yes"}});
    REQUIRE(wish);
    REQUIRE(wish->not_kept.size() == 1);
    CHECK(wish->not_kept.front() == fmt::format("--{} is not kept: {}", each.name, each.help));
  }
}

TEST_CASE("what sbatch does itself is kept as it is said") {
  const auto wish = wish_from_slurm({{"chdir", "/data"},
                                     {"cpus-per-task", "4"},
                                     {"error", "%j.err"},
                                     {"export", "NONE"},
                                     {"gpus", "1"},
                                     {"output", "%j.out"},
                                     {"parsable", ""},
                                     {"wait", ""},
                                     {"wrap", "true"}});
  REQUIRE(wish);
  CHECK(wish->options == Words{"--count=1"});
  CHECK(wish->folder == "/data");
  CHECK(wish->cpus == "4");
  CHECK(wish->error_to == "%j.err");
  CHECK(wish->exported == "NONE");
  CHECK(wish->output_to == "%j.out");
  CHECK(wish->number_alone);
  CHECK(wish->waits);
  CHECK(wish->command == "true");
}

TEST_CASE("an option of Slurm's is answered with ours") {
  using Row = std::tuple<const char*, const char*, const char*>;
  const auto known = std::to_array<std::string_view>({"--count", "--name", "--time"});
  for (const auto& [word, value, answer] :
       {Row{"--gres", "gpu:1", "--gres is Slurm's: write -n 1"},
        Row{"--gres", "gpu:a100:2", "--gres is Slurm's: write -n 2 --name=a100"},
        Row{"-G", "4", "-G is Slurm's: write -n 4"}, Row{"-t", "30", "-t is Slurm's: write --time=30m"},
        Row{"-t", "1-12", "-t is Slurm's: write --time=36h"},
        Row{"--dependency", "afterok:7", "--dependency is Slurm's: write berth submit --after-ok=7"},
        Row{"--output", "x.log", "--output is Slurm's: `berth sbatch` takes it"},
        Row{"-p", "gpu", "-p is Slurm's: leave it out; one machine has no partitions"},
        Row{"--hold", "", "--hold is Slurm's: write berth submit --hold"}})
    CHECK(ours_for_slurm(word, value, known) == answer);
  // Their value is missing, or they are nobody's.
  for (const char* word : {"--gres", "--gpu", "-Z", "-", "--", "-tt", "gres"})
    CHECK_MESSAGE(!ours_for_slurm(word, "", known), word);
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
}  // namespace berth::slurm_values_test
