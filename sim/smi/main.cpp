// The simulated nvidia-smi: its forms of output, messages and exit statuses, from the scenario
// directly.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "nvml/abi.h"
#include "smi/report.h"

namespace berth::sim {
namespace {

constexpr int kBadArgument = 2;
constexpr int kNotFoundStatus = 6;
constexpr int kNotLoaded = 9;
constexpr int kNoLibrary = 12;
constexpr int kOther = 255;

struct Options {
  std::string_view query_devices;
  std::string_view query_processes;
  std::string_view format;
  std::string_view select;
  std::string_view wrong;
  bool list = false;
  bool query = false;
  bool xml = false;
  bool topology = false;
  bool help = false;
  bool version = false;
};

bool value_of(std::string_view argument, std::string_view name, std::string_view& value) {
  if (!argument.starts_with(name) || argument.size() <= name.size() || argument[name.size()] != '=')
    return false;
  value = argument.substr(name.size() + 1);
  return true;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (value_of(argument, "--query-gpu", options.query_devices) ||
        value_of(argument, "--query-compute-apps", options.query_processes) ||
        value_of(argument, "--format", options.format) || value_of(argument, "--id", options.select))
      continue;
    if (argument == "-L" || argument == "--list-gpus")
      options.list = true;
    else if (argument == "-q" || argument == "--query")
      options.query = true;
    else if (argument == "-x" || argument == "--xml-format")
      options.xml = true;
    else if (argument == "-h" || argument == "--help")
      options.help = true;
    else if (argument == "--version")
      options.version = true;
    else if (argument == "-i" && i + 1 < count)
      options.select = arguments[++i];
    else if (argument == "topo" && i + 1 < count && std::string_view(arguments[i + 1]) == "-m")
      options.topology = true, ++i;
    else
      options.wrong = argument;
  }
  return options;
}

int say(const std::string& text, int status) {
  std::fputs(text.c_str(), stdout);
  return status;
}

int status_of(int code) {
  return code <= 15 || code == 18 ? code : kOther;
}

int fail_to_start(int code) {
  if (code == kNotLoaded)
    return say(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the "
        "latest NVIDIA driver is "
        "installed and running.\n\n",
        kNotLoaded);
  return say(std::string("Failed to initialize NVML: ") + error_text(code) + "\n", status_of(code));
}

// The tool looks up every device before it prints anything, and stops at the first that fails.
int check_devices(const Cards& cards) {
  for (const Card& card : cards.all) {
    const int code = card.device->lost ? 15 : card.device->handle_result;
    if (code == 0) continue;
    const std::string advice = code == 15 ? ".  Reboot the system to recover this GPU" : "";
    return say("Unable to determine the device handle for GPU" + std::to_string(card.index) + ": " +
                   pci_text(card.device->pci, 8) + ": " + error_text(code) + advice + "\n",
               status_of(code));
  }
  return 0;
}

bool parse_format(std::string_view text, Format& format) {
  bool csv = false;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (word == "csv")
      csv = true;
    else if (word == "noheader")
      format.header = false;
    else if (word == "nounits")
      format.units = false;
    else
      return false;
    if (comma == std::string_view::npos) return csv;
    text.remove_prefix(comma + 1);
  }
}

int run_query(const Options& options, const Cards& cards) {
  Format format;
  if (options.format.empty())
    return say("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n", kBadArgument);
  if (!parse_format(options.format, format))
    return say("Unsupported format. Please run 'nvidia-smi -h' for help.\n", kBadArgument);
  std::string out;
  const std::string wrong = !options.query_devices.empty()
                                ? query_devices(cards, options.query_devices, format, out)
                                : query_processes(cards, options.query_processes, format, out);
  if (!wrong.empty()) return say("Field \"" + wrong + "\" is not a valid field to query.\n\n", kBadArgument);
  return say(out, 0);
}

int report(const Options& options, const World& world) {
  Cards cards;
  if (!select_cards(world, options.select, cards)) return say("No devices were found\n", kNotFoundStatus);
  if (cards.all.empty()) return say("No devices were found\n", kNotFoundStatus);
  if (const int status = check_devices(cards); status != 0) return status;
  if (!options.query_devices.empty() || !options.query_processes.empty()) return run_query(options, cards);
  if (options.list) return say(device_list(cards), 0);
  if (options.topology) return say(topology_matrix(cards), 0);
  if (options.query && options.xml) return say(xml_report(cards), 0);
  if (options.query) return say(text_report(cards), 0);
  return say(overview_table(cards), 0);
}

constexpr const char* kHelp =
    "The simulated nvidia-smi of berth-sim. It has:\n"
    "  (nothing)                                   the table\n"
    "  -L                                          the list of devices\n"
    "  -q                                          the readings of each device\n"
    "  -q -x                                       the same as XML\n"
    "  topo -m                                     the matrix of connections\n"
    "  --query-gpu=FIELDS --format=csv[,noheader][,nounits]\n"
    "  --query-compute-apps=FIELDS --format=csv[,noheader][,nounits]\n"
    "  -i ID[,ID...]                               of these devices only\n";

int main_of(int count, char** arguments) {
  const Options options = parse(count, arguments);
  if (options.help) return say(kHelp, 0);
  World world;
  if (!world.refresh()) return fail_to_start(999);
  const Verdict verdict = world.judge("nvidia-smi", -1);
  world.log("nvidia-smi", -1, -1, verdict.result);
  if (!world.scenario().has_libraries())
    return say(
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA "
        "Display Driver is "
        "properly installed and present in your system.\n",
        kNoLibrary);
  const int code = verdict.result != 0 ? verdict.result : world.scenario().init_result;
  if (code != 0) return fail_to_start(code);
  if (!options.wrong.empty())
    return say("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n",
               kBadArgument);
  if (options.version) return say("NVIDIA-SMI version  : " + world.scenario().driver_version() + "\n", 0);
  return report(options, world);
}

}  // namespace

const char* const kBuiltGeneration = "";

}  // namespace berth::sim

int main(int count, char** arguments) {
  return berth::sim::main_of(count, arguments);
}
