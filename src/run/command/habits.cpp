#include "berth/command/habits.h"

#include <algorithm>
#include <array>

namespace berth::command {
namespace {

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
    {"pause", "edit JOB --hold"},
    {"stash", "edit JOB --hold"},
    {"hold", "edit JOB --hold"},
    {"resume", "edit JOB --no-hold"},
    {"restart", "retry"},
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
    {"info", "list"},
    {"watch", "top"},
    {"history", "receipt or usage"},
    {"report", "usage"},
    // Running
    {"lease", "run or claim"},
    {"start", "run"},
    {"exec", "run"},
    {"reserve", "claim or shell"},
    {"lock", "run or claim"},
    {"kill", "release or cancel"},
    {"stop", "release"},
    {"free", "list or release"},
    // Options
    {"-g", "--count"},
    {"--n", "--count"},
    {"--gpu", "--count"},
    {"--num-gpus", "--count"},
    {"--vram", "--memory"},
    {"--timeout", "--wait"},
    {"--id", "--devices"},
    {"-i", "--devices"},
    {"-d", "--devices"},
    {"-V", "--version"},
    {"--interval", "--watch"},
    {"--delay", "--at"},
    {"--depends-on", "--after"},
    {"--tail", "--follow"},
    {"--port", "--listen"},
    {"--mem", "",
     "is memory of the machine in Slurm, and Berth does not limit that; for memory of a GPU write --memory"},
    {"--gpus=all", "", "is Docker's: write -n with the number of GPUs that you want"},
    {"--priority", "",
     "is not needed: the queue has no priorities; --yield lets others go first, and `berth edit JOB --first` "
     "puts "
     "a job before your others"},
    {"-it", "", "is not needed: the command has your terminal"},
    {"--rm", "", "is not needed: nothing of the command is left to remove"},
});

}  // namespace

std::span<const Habit> habits() {
  return kHabits;
}

const Habit* habit_of(std::string_view word) {
  const auto* const found = std::ranges::find(kHabits, word, &Habit::word);
  return found == kHabits.end() ? nullptr : found;
}

}  // namespace berth::command
