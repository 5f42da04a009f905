#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth {

/// A job to which Slurm has allotted GPUs of this machine, as slurmd tells prolog and epilog.
struct SlurmJob {
  std::uint32_t number = 0;
  std::uint32_t uid = 0;
  std::optional<std::uint32_t> gid;  ///< nullopt: an older Slurm does not say it
  std::vector<std::string> gpus;     ///< selectors (request.h): numbers or UUIDs; empty: it has none

  bool operator==(const SlurmJob&) const = default;
};

/// Reads the variables of a prolog. `variable`: gives "" for a variable that is not set. Error:
/// `usage` if they are not those of a prolog or an epilog.
Result<SlurmJob> slurm_job_from(const std::function<std::string_view(std::string_view name)>& variable);

/// The devices that the numbers of Slurm mean. `listed`: the GPUs of Slurm in the order of its
/// gres.conf, if Slurm does not have all GPUs of the machine; empty: it has all. Error: `usage` if
/// a number is not among them.
Result<std::vector<std::string>> devices_of_slurm(const std::vector<std::string>& gpus,
                                                  const std::vector<std::string>& listed);

}  // namespace berth
