#include "berth/cli/sim_option.h"

#include <unistd.h>

#include <cerrno>

#include "berth/base/fail.h"
#include "berth/sys/system_error.h"

namespace berth::cli {
command::Option simulation_option(std::optional<std::string>& machine) {
  return {"Other", "sim", "MACHINE", "on a simulated machine: a scenario file, or 8xH100",
          [&machine](std::string_view value) -> Result<void> {
            if (value.empty())
              return fail(ErrorCode::usage, "must be a scenario file, or a machine like 8xH100");
            machine = value;
            return {};
          }};
}

std::vector<char*> without_simulation(std::span<char*> words, std::size_t untouched) {
  std::vector<char*> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool ours = i + untouched < words.size();
    if (ours && word == "--sim") {
      ++i;
    } else if (!ours || !word.starts_with("--sim=")) {
      rest.push_back(words[i]);
    }
  }
  return rest;
}

std::unexpected<Error> enter_simulation(const std::string& machine, std::span<char*> words,
                                        std::size_t untouched) {
  BERTH_LET(auto self, command::own_path());
  // Installed the two lie side by side; in a build tree the simulator has a folder of its own.
  const std::string folder = self.substr(0, self.rfind('/'));
  std::string name = "berth-sim";
  std::string strict = "--strict";
  std::string separator = "--";
  std::string scenario = machine;
  std::vector<char*> arguments{name.data(), strict.data(), scenario.data(), separator.data(), self.data()};
  const std::vector<char*> rest = without_simulation(words, untouched);
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  arguments.push_back(nullptr);
  for (const std::string& path : {folder + "/berth-sim", folder + "/sim/berth-sim"}) {
    ::execv(path.c_str(), arguments.data());
    if (errno != ENOENT && errno != ENOTDIR) return sys::fail_errno(fmt::format("starting {}", path));
  }
  return fail(ErrorCode::failure,
              "--sim needs the simulator: there is no berth-sim in {} (it comes with Berth's package)",
              folder);
}

}  // namespace berth::cli
