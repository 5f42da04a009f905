#include "berth/cli/driver.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "berth/api/cuda.h"
#include "berth/base/error.h"
#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/shared_options.h"
#include "berth/source/cuda/cuda_trial.h"
#include "berth/source/source.h"
#include "berth/sys/file.h"

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

namespace {

/// The child that loads the driver: requests come in on its standard input, snapshots go out on its
/// output.
class ProbeCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "[SOURCE]"; }
  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    const auto expected = words.empty() ? std::nullopt : source::source_kind_from_text(words.front());
    source::run_probe(0, 1, expected.value_or(source::SourceKind::kAutomatic), version());
  }
};

}  // namespace

BERTH_COMMAND(make_probe, ProbeCommand);

// `berth __cuda-order` prints the UUIDs of the GPUs as CUDA numbers them under the mask of its
// environment. A process that has initialised CUDA cannot change its mask and cannot be forked, so
// a program of its own asks.

namespace {

class CudaOrder : public command::Command {
 public:
  Result<command::Output> run(command::Environment&, const command::Words&) override {
    BERTH_LET(const auto order, cuda_order());
    command::Output output;
    for (const std::string& uuid : order) output.out += uuid + "\n";
    return output;
  }
};

}  // namespace

BERTH_COMMAND(make_cuda_order, CudaOrder);

// `berth __cuda-trial [context]` starts CUDA under the mask of its environment, and says how that
// went (src/core/source/cuda/cuda_trial.h).

namespace {

class CudaTrialCommand : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override { syntax.arguments = "[context]"; }
  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    source::run_cuda_trial(std::ranges::find(words, "context") != words.end());
  }
};

}  // namespace

BERTH_COMMAND(make_cuda_trial, CudaTrialCommand);

}  // namespace berth::cli
