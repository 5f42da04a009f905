#include "berth/jobs/model/submit_rules.h"

#include <doctest/doctest.h>

namespace berth::job_script_test {
namespace {

using Lines = std::vector<JobScriptLine>;

TEST_CASE("options of a script stand in its lines before the first command") {
  CHECK(options_in_job_script(
            "a.sh", "#!/bin/sh\n#BERTH -n 2 --time=2h\n\n# other\n#BERTH -q\npython\n#BERTH -n 9\n") ==
        Lines{{"a.sh, line 2", {"-n", "2", "--time=2h"}}, {"a.sh, line 5", {"-q"}}});
  CHECK(options_in_job_script("a.sh", "") == Lines{});
  CHECK(options_in_job_script("a.sh", "#BERTHOLD -n 2") == Lines{});
}

TEST_CASE("words of such a line are those of a shell") {
  CHECK(options_in_job_script("a", R"(#BERTH --note "two words" 'it''s' a\ b "q\"q" # a comment)") ==
        Lines{{"a, line 1", {"--note", "two words", "its", "a b", "q\"q"}}});
  const auto open = options_in_job_script("a\x1b", "#!/bin/sh\n#BERTH --note \"open\n");
  REQUIRE_FALSE(open);
  CHECK(open.error().message == "a\\x1b, line 2: a quote does not end");
}

TEST_CASE("a script that is to run where its file is not names a shell") {
  using Words = std::vector<std::string>;
  CHECK(shell_of_script("#!/bin/bash\necho") == Words{"/bin/bash"});
  CHECK(shell_of_script("#! /usr/bin/env bash -e\n") == Words{"/usr/bin/env", "bash", "-e"});
  CHECK(shell_of_script("#!/bin/sh") == Words{"/bin/sh"});
  for (const char* other : {"", "#!", "#!/usr/bin/env", "#!/usr/bin/python3\n", "#!/bin/bashful\n", "sh\"\n"})
    CHECK_FALSE(shell_of_script(other));
  CHECK_FALSE(shell_of_script("#!/bin/sh\n" + std::string(200'000, '#')));
}

}  // namespace
}  // namespace berth::job_script_test
