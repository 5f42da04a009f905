// Words of people who know another tool, and what they mean by them. A wrong guess is worse than
// none: where a word may mean two things, both are named, and where Berth has no such thing it says
// why.
#include <algorithm>
#include <array>

#include "berth/command/command.h"

namespace berth::command {
namespace {

constexpr std::string_view kAllUsers =
    "is not there: `berth list` and `berth queue` show all users, and `| grep USER` leaves the lines of one";
constexpr std::string_view kAllShown = "is not needed: all of them are shown";
constexpr std::string_view kOwnTerminal = "is not needed: the command has your input and your terminal";
constexpr std::string_view kOneMachine =
    "is Slurm's: leave it out; what is run has one machine, and --anywhere chooses which";
constexpr std::string_view kHowManyOrWhich =
    "is not there: -n 2 says how many GPUs, --devices 0,1 says which";
constexpr std::string_view kHere = "is not there: it runs in the folder in which you are, so cd there first";
constexpr std::string_view kToFile =
    "is Slurm's: berth run -- COMMAND > FILE, or `berth submit -o FILE` for a job";
constexpr std::string_view kVariables =
    "is not needed: the command has your environment; to set a variable: berth run -- env NAME=VALUE COMMAND";

constexpr auto kHabits = std::to_array<Habit>({
    // Slurm, PBS, gflow, pueue, task-spooler
    {"squeue", "queue"},
    {"sinfo", "list"},
    {"scancel", "cancel"},
    {"sacct", "jobs or usage"},
    {"sstat", "top or receipt"},
    {"salloc", "shell"},
    {"srun", "run"},
    {"qsub", "submit"},
    {"qstat", "queue"},
    {"qdel", "cancel"},
    {"gbatch", "submit"},
    {"gqueue", "jobs"},
    {"gcancel", "cancel"},
    {"gjob", "jobs or edit"},
    {"ginfo", "list"},
    {"gflowd", "", "is not needed: no service runs"},
    {"pueued", "", "is not needed: no service runs"},
    {"add", "submit"},
    {"follow", "log"},
    {"clean", "forget"},
    {"remove", "cancel or forget"},
    {"rm", "cancel or forget"},
    {"delete", "cancel or forget"},
    {"pause", "edit JOB --hold"},
    {"stash", "edit JOB --hold"},
    {"hold", "edit JOB --hold"},
    {"resume", "edit JOB --no-hold"},
    {"unpause", "edit JOB --no-hold"},
    {"enqueue", "submit or edit JOB --no-hold"},
    {"switch", "edit JOB --before OTHER"},
    {"reset", "cancel --all"},
    {"restart", "retry"},
    {"rerun", "retry"},
    {"stats", "usage or jobs"},
    {"nodes", "list --anywhere"},
    {"hosts", "list --anywhere"},
    {"sprio", "queue"},
    {"scontrol", "jobs or edit"},
    {"sattach", "attach"},
    {"parallel", "",
     "is not needed: as many jobs run as there are GPUs for; `berth submit --array 0-99%4` runs four at "
     "once"},
    {"group", "", "is not needed: one queue serves all; `--array 0-99%4` says how many run at once"},
    // Looking
    {"status", "list"},
    {"ps", "list or queue"},
    {"q", "queue"},
    {"que", "queue"},
    {"inspect", "jobs or why"},
    {"show", "list or jobs"},
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
    {"start", "run or edit JOB --no-hold"},
    {"exec", "run or attach"},
    {"reserve", "claim or shell"},
    {"lock", "run or claim"},
    {"kill", "release or cancel"},
    {"stop", "cancel or release"},
    {"free", "list or release"},
    // Options
    {"--n", "--count"},
    {"--num-gpus", "--count"},
    {"-g", "", kHowManyOrWhich},
    {"--gpu", "", kHowManyOrWhich},
    {"--vram", "--memory"},
    {"--timeout", "--wait"},
    {"--id", "--devices"},
    {"--interval", "--watch"},
    {"--retry", "--retries"},
    {"--delay", "--at", "is not there for `berth run`: `berth submit --at 2h` starts it later"},
    {"--depends-on", "--after", "is not there for `berth run`: `berth submit --after 12` waits for job 12"},
    {"--mem", "",
     "is memory of the machine in Slurm, and Berth does not limit that; for memory of a GPU write --memory"},
    {"--gpus=all", "", "is Docker's: write -n with the number of GPUs that you want"},
    {"--priority", "",
     "is not needed: the queue has no priorities; --yield lets others go first, and `berth edit JOB --first` "
     "puts a job before your others"},
    {"-it", "", kOwnTerminal},
    {"-i", "", kOwnTerminal},
    {"--interactive", "", kOwnTerminal},
    {"--pty", "", "is not needed: the command has your terminal; a job gets one with `berth submit --tty`"},
    {"--exclusive", "",
     "is not needed: a GPU is yours alone unless you ask for a part with --memory or --shared"},
    {"--constraint", "", "is Slurm's: --name A100 wants a model, and --where asks for anything else"},
    {"-C", "", "is Slurm's: --name A100 wants a model, and --where asks for anything else"},
    {"--nodelist", "", "is Slurm's: --anywhere --host HOST starts it on that host of the lab"},
    {"-w", "", "is Slurm's: --anywhere --host HOST starts it on that host of the lab"},
    {"-N", "", kOneMachine},
    {"--nodes", "", kOneMachine},
    {"--ntasks", "", kOneMachine},
    {"-o", "", kToFile},
    {"--output", "", kToFile},
    {"-D", "", kHere},
    {"--chdir", "", kHere},
    {"--cwd", "", kHere},
    {"--workdir", "", kHere},
    {"--working-directory", "", kHere},
    {"--export", "", kVariables},
    {"-e", "", kVariables},
    {"--wrap", "", "is Slurm's: berth submit -- sh -c 'COMMAND'"},
    {"--detach", "", "is Docker's: `berth submit` runs it without your terminal"},
    {"-d=", "", "is Docker's: `berth submit` runs it without your terminal"},
    {"-d", "--devices"},
    {"--label", "--job-name", "is not there: --note TEXT is shown to all beside the lease"},
    {"--rm", "", "is not needed: nothing of the command is left to remove"},
    {"--volume", "", "is not needed: the command has your files"},
    {"--shm-size", "", "is not needed: the command has what the machine has"},
    {"--cpus", "", "is Docker's: leave it out; Berth sets no limit of CPUs"},
    {"-u", "", "is not needed: it runs as you"},
    {"--user", "", "is not needed: it runs as you"},
});

/// Of commands that look, or that name what is there.
constexpr auto kLookingHabits = std::to_array<Habit>({
    {"--id", "--devices"},
    {"-i", "--devices"},
    {"-d", "--devices"},
    {"--interval", "--watch"},
    {"-n", "--watch"},
    {"--lines", "--tail"},
    {"-F", "--follow"},
    {"--since", "--hours"},
    {"--port", "--listen"},
    {"--full", "--long"},
    {"-c", "--long"},
    {"-p", "--long"},
    {"-P", "--long"},
    {"-q", "--long"},
    {"--show-cmd", "--long"},
    {"--show-pid", "--long"},
    {"--query-gpu", "--csv"},
    {"--format", "--csv"},
    {"--no-color", "--color"},
    {"-a", "--all", kAllShown, true},
    {"--all", "", kAllShown, true},
    {"-u", "--all", kAllUsers},
    {"--user", "--all", kAllUsers},
    {"--me", "--all", kAllUsers},
    {"--show-user", "", kAllUsers},
    {"-L", "", "is not needed: `berth list` is a list of the GPUs"},
    {"-v", "", "is not there: --version says the version, and `berth list -l` shows more"},
});

}  // namespace

std::span<const Habit> habits() {
  return kHabits;
}

std::span<const Habit> looking_habits() {
  return kLookingHabits;
}

const Habit* habit_of(std::string_view word) {
  const auto* const found = std::ranges::find(kHabits, word, &Habit::word);
  return found == kHabits.end() ? nullptr : found;
}

}  // namespace berth::command
