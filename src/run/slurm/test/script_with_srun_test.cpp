#include "berth/slurm/sbatch_options.h"

#include <doctest/doctest.h>

#include <string>

namespace berth::script_with_srun_test {
namespace {

TEST_CASE("a line that calls srun is found where a command can begin") {
  for (const char* line : {"srun python train.py", "  srun", "exec srun x", "time srun x", "A=1 B=2 srun x",
                           "cd x && srun y", "true; srun y", "if ok; then srun y; fi", "x | srun y",
                           "( srun y )", "module load cuda &&  srun -n 4 y"})
    CHECK_MESSAGE(line_with_srun(std::string("#!/bin/bash\n\n") + line + "\nsrun again\n") == 3, line);
  for (const char* text :
       {"", "# srun x", "echo srun", "which srun", "python srun.py", "echo hi # srun", "./srun x", "srunner",
        "srun() { \"$@\"; }\nsrun x", "srun x\nfunction srun { \"$@\"; }", "alias srun=\nsrun x",
        "srun x\ncommand -v srun >/dev/null || srun() { \"$@\"; }"})
    CHECK_MESSAGE(line_with_srun(text) == 0, text);
}

}  // namespace
}  // namespace berth::script_with_srun_test
