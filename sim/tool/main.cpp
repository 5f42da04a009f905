// berth-sim: runs a program inside a simulated GPU machine.
#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "machine/allocations.h"
#include "machine/models.h"
#include "machine/parse.h"
#include "machine/process_life.h"
#include "tool/amd_tree.h"
#include "tool/layout.h"
#include "tool/machine_text.h"

namespace berth::sim {
namespace {

constexpr int kUsage = 2;

constexpr const char* kHelp =
    "Usage: berth-sim FILE|NxMODEL[+NxMODEL...] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND inside a simulated GPU machine: it finds a libnvidia-ml.so.1, a libcuda.so.1\n"
    "and an nvidia-smi that answer from the scenario in FILE, or from N devices of MODEL.\n"
    "AMD cards (MI300X) are there as the files of sysfs below BERTH_SIM_ROOT, for Berth to read.\n"
    "\n"
    "  --strict FILE ...  refuses a malformed scenario; else the driver answers 999, as one that is broken\n"
    "  --check FILE       says what is wrong with a scenario (exit status 2) or nothing\n"
    "  --print NxMODEL    prints the scenario of a machine, to start a file from\n"
    "  --list-models      prints the models that are known\n"
    "  --help, --version\n"
    "\n"
    "Examples: berth-sim 8xH100 -- nvidia-smi\n"
    "          berth-sim 2xA100+1xT4 -- python3 train.py\n"
    "          berth-sim 4xMI300X -- berth list\n";

int complain(const std::string& what, int status = kUsage) {
  std::fprintf(stderr, "berth-sim: %s\n", what.c_str());
  return status;
}

int list_models() {
  std::size_t count = 0;
  const Model* model = models(count);
  for (; count != 0; --count, ++model) {
    if (model->memory == Memory::unified)
      std::printf("%-13s %-31s unified memory\n", model->key, model->name);
    else
      std::printf("%-13s %-31s %6u MiB\n", model->key, model->name, model->memory_mib);
  }
  std::printf("%-13s %-31s %6u MiB\n", kMi300x.key, kMi300x.name, kMi300x.memory_mib);
  return 0;
}

int print_machine(const char* text) {
  Machine machine;
  const std::string wrong = parse_machine(text, machine);
  if (!wrong.empty()) return complain(std::string(text) + ": " + wrong);
  std::fputs(machine.text.c_str(), stdout);
  return 0;
}

int check(const char* file) {
  if (access(file, R_OK) != 0) return complain(std::string(file) + ": " + strerror(errno));
  Scenario scenario;
  const std::string wrong = parse_scenario(read_file(file), file, scenario);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  return kUsage;
}

// Where the scenario lies: an existing file wins over a machine of the same name.
std::string find_scenario(const char* argument, std::string& path) {
  char resolved[PATH_MAX];
  if (access(argument, F_OK) != 0) {
    const int error = errno;
    Machine machine;
    const std::string wrong = parse_machine(argument, machine);
    if (wrong == "not a machine") {
      const bool is_path = std::string_view(argument).find_first_of("/.") != std::string_view::npos;
      return std::string(argument) + ": " + strerror(error) +
             (is_path ? "" : "; a machine is written like 8xH100");
    }
    if (!wrong.empty()) return std::string(argument) + ": " + wrong;
    return machine_file(machine.name, machine.text, path);
  }
  if (realpath(argument, resolved) == nullptr) return std::string(argument) + ": " + strerror(errno);
  path = resolved;
  return {};
}

void prepend(const char* variable, const std::string& directory) {
  const char* old = getenv(variable);
  const std::string value = old != nullptr && *old != '\0' ? directory + ":" + old : directory;
  setenv(variable, value.c_str(), 1);
}

int run(const char* argument, char** command, bool strict) {
  std::string file;
  if (const std::string wrong = find_scenario(argument, file); !wrong.empty()) return complain(wrong);
  const Layout layout = find_layout();
  if (layout.root.empty())
    return complain("the simulated libraries are neither beside this program nor in ../lib/berth/sim");
  // A malformed file is no reason to stop: the library answers 999 and says why, which is what a
  // test of a client wants to see.
  Scenario scenario;
  const std::string malformed = parse_scenario(read_file(file.c_str()), file, scenario);
  if (!malformed.empty() && strict) return complain(malformed);
  if (!malformed.empty()) scenario = {};
  const std::string state = file + ".d";
  if (!make_state_directory(state)) return complain(state + ": " + strerror(errno));
  // A machine without AMD cards has a tree too: what runs inside sees none of the machine around
  // it.
  const std::string amd = state + "/amd-" + std::to_string(scenario.amd_cards);
  if (const std::string wrong = make_amd_tree(amd, scenario.amd_cards); !wrong.empty())
    return complain(wrong);
  prepend("LD_LIBRARY_PATH", scenario.has_libraries() ? layout.libraries(scenario.active_generation().name)
                                                      : directory_without_libraries(state));
  if (scenario.has_programs()) prepend("PATH", layout.programs());
  setenv("BERTH_SIM", file.c_str(), 1);
  setenv("BERTH_SIM_ROOT", amd.c_str(), 1);
  setenv("BERTH_DIR", (state + "/leases").c_str(), 1);
  // A trial leaves no job and no receipt among those of the real machine, and shows none of them.
  setenv("XDG_STATE_HOME", (state + "/state-" + std::to_string(geteuid())).c_str(), 1);
  execvp(command[0], command);
  const int error = errno;
  return complain(std::string(command[0]) + ": " + strerror(error), error == ENOENT ? 127 : 126);
}

int main_of(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (first == "--help" || first == "-h") return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
  if (first == "--version") return std::puts("berth-sim " BERTH_VERSION) < 0 ? 1 : 0;
  if (first == "--list-models") return list_models();
  if (first == "--print" && count == 3) return print_machine(arguments[2]);
  if (first == "--check" && count == 3) return check(arguments[2]);
  const bool strict = first == "--strict";
  if (strict) --count, ++arguments;
  if (count < 2 || *arguments[1] == '\0' || *arguments[1] == '-')
    return complain("which machine? (berth-sim --help)");
  const int command = count > 2 && std::string_view(arguments[2]) == "--" ? 3 : 2;
  if (count <= command) return complain("which command? (berth-sim --help)");
  return run(arguments[1], arguments + command, strict);
}

}  // namespace

const char* const kBuiltGeneration = "";

}  // namespace berth::sim

int main(int count, char** arguments) {
  return berth::sim::main_of(count, arguments);
}
