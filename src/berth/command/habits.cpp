#include "berth/command/habits.h"

#include <algorithm>
#include <array>

namespace berth::command {
namespace {

struct Habit {
  std::string_view word;
  std::string_view meant;
};

constexpr auto kHabits = std::to_array<Habit>({
    // Slurm, PBS, gflow, pueue, task-spooler
    {"squeue", "queue"},
    {"sinfo", "list"},
    {"scancel", "cancel"},
    {"sacct", "jobs or usage"},
    {"salloc", "shell"},
    {"srun", "run"},
    {"qsub", "submit"},
    {"qstat", "queue"},
    {"qdel", "cancel"},
    {"gbatch", "submit"},
    {"gqueue", "jobs"},
    {"gcancel", "cancel"},
    {"add", "submit"},
    {"follow", "log"},
    {"clean", "forget"},
    {"remove", "cancel or forget"},
    // Looking
    {"status", "list"},
    {"ps", "list or queue"},
    {"nvidia-smi", "list"},
    {"gpustat", "list"},
    {"nvitop", "top"},
    {"htop", "top"},
    {"tail", "log"},
    {"logs", "log"},
    {"output", "log"},
    // Running
    {"lease", "run or claim"},
    {"start", "run"},
    {"exec", "run"},
    {"reserve", "claim or shell"},
    {"kill", "release or cancel"},
    {"stop", "release"},
    {"free", "list or release"},
    // Options
    {"-g", "--count"},
    {"--n", "--count"},
    {"--gpu", "--count"},
    {"--num-gpus", "--count"},
    {"--mem", "--memory"},
    {"--vram", "--memory"},
    {"--timeout", "--wait"},
    {"--id", "--devices"},
    {"-i", "--devices"},
    {"--interval", "--watch"},
});

}  // namespace

std::string_view meant_by_habit(std::string_view word) {
  const auto found = std::ranges::find(kHabits, word, &Habit::word);
  return found == kHabits.end() ? "" : found->meant;
}

}  // namespace berth::command
