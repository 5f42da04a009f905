#include "berth/slurm/prolog_job.h"

#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"

namespace berth {
namespace {

// An instance has no number: Slurm names it in the mask alone.
std::string_view allotted(const std::function<std::string_view(std::string_view name)>& variable) {
  for (const Vendor& vendor : vendors()) {
    const std::string_view mask = variable(vendor.mask_variable);
    if (!mask.empty() && !is_index(mask.substr(0, mask.find_first_of(",-")))) return mask;
  }
  return variable("SLURM_JOB_GPUS");
}

}  // namespace

Result<SlurmJob> slurm_job_from(const std::function<std::string_view(std::string_view name)>& variable) {
  SlurmJob job;
  const auto number = slurm_job_of(variable(kSlurmJobVariable));
  const auto uid = number_from_text<std::uint32_t>(variable("SLURM_JOB_UID"));
  if (!number || !uid)
    return fail(
        ErrorCode::usage,
        "this is for Slurm: slurmd starts it for a job, with SLURM_JOB_ID and SLURM_JOB_UID. Name a script "
        "that calls it as Prolog or Epilog in slurm.conf");
  job.number = *number;
  job.uid = *uid;
  job.gid = number_from_text<std::uint32_t>(variable("SLURM_JOB_GID"));
  const std::string_view gpus = allotted(variable);
  if (gpus.empty()) return job;
  auto named = selectors_from_text(gpus);
  if (!named)
    return std::unexpected(context(named.error(), fmt::format("the GPUs of Slurm's job {}", job.number)));
  job.gpus = *std::move(named);
  return job;
}

Result<std::vector<std::string>> devices_of_slurm(const std::vector<std::string>& gpus,
                                                  const std::vector<std::string>& listed) {
  if (listed.empty()) return gpus;
  std::vector<std::string> devices;
  for (const std::string& gpu : gpus) {
    const auto number = number_from_text<std::size_t>(gpu);
    if (number && *number >= listed.size())
      return fail(ErrorCode::usage,
                  "Slurm has allotted its GPU {}, and --gpus names {} only: name all that gres.conf has",
                  *number, listed.size());
    devices.push_back(number ? listed[*number] : gpu);
  }
  return devices;
}

}  // namespace berth
