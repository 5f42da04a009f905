// What people write: expressions, files of sites, scripts, lists of jobs.
#include <cstdint>
#include <string>
#include <vector>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/hub/agents.h"
#include "berth/jobs/model/submit_rules.h"
#include "berth/request/request.h"
#include "berth/simulate/workload.h"
#include "berth/site/site_file.h"
#include "berth/slurm/sbatch_options.h"
#include "targets.h"

namespace berth::fuzz {
namespace {

const Snapshot& machine() {
  static const Snapshot kMachine = [] {
    Snapshot snapshot;
    for (unsigned index = 0; index < 3; ++index) {
      Device device;
      device.index = index;
      device.uuid = "GPU-" + std::to_string(index) + "d0b4f5e";
      device.pci_bus_id = "0000:0" + std::to_string(index) + ":00.0";
      device.name = "NVIDIA H100 80GB HBM3";
      device.memory = {.total_bytes = 80ULL << 30U,
                       .used_bytes = 1ULL << 30U,
                       .free_bytes = 79ULL << 30U,
                       .reserved_bytes = {}};
      device.utilization_percent = 7;
      device.temperature_c = 41;
      device.compute_capability = 90;
      snapshot.devices.push_back(device);
    }
    return snapshot;
  }();
  return kMachine;
}

void read_small_texts(std::string_view input) {
  (void)bytes_from_text(input);
  (void)seconds_from_text(input);
  (void)devices_named(input, machine());
  (void)resolve_selector(input, machine());
  for (const auto* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    for (const Mask& mask : resolve_masks({{name, std::string(input)}}, machine()))
      require(mask.uuids.size() <= machine().devices.size(), "a mask shows no more than there is");
  }
  const std::string shown = printable(input);
  require(printable(shown) == shown, "what is printable stays as it is");
}

}  // namespace

void read_expression(std::string_view input) {
  read_small_texts(input);
  const auto expression = Expression::parse(input);
  if (!expression) return;
  const auto again = Expression::parse(expression->text());
  require(again && again->text() == expression->text(), "an expression is read as it was written");
  const Device& device = machine().devices.front();
  const DeviceFacts facts{device, device.memory.free_bytes};
  const bool holds = !expression->unmet_by(facts);
  require(holds == !again->unmet_by(facts), "what was written means the same");
  require(!holds || !expression->never_met_by(device), "what holds may hold");
  (void)expression->readings();
  (void)expression->threshold();
  if (const auto loosened = expression->loosened_for(facts))
    require(!loosened->unmet_by(facts), "what was loosened holds");
  bool all = true;
  for (const Expression& part : expression->conjuncts()) all = all && !part.unmet_by(facts);
  require(all == holds, "an expression holds where all of its parts do");
}

void read_site_file(std::string_view input) {
  const auto site = site::apply_site_text({}, input, "berth.toml", false);
  if (!site) return;
  const auto narrower = site::apply_site_text(*site, input, "berth.toml", true);
  if (!narrower) return;
  require(narrower->hidden_tolerance_bytes <= site->hidden_tolerance_bytes, "a user's file only narrows");
  require(narrower->excluded.size() >= site->excluded.size(), "a user's file only narrows");
}

void read_agents_file(std::string_view input) {
  (void)hub::agents_from_toml("agents.toml", input, {});
  (void)hub::agent_from_word(input, {});
  if (const auto peer = http::peer_from_url(input))
    require(http::peer_from_url(http::url_of(*peer)).has_value(), "a URL that is written can be read");
}

void read_script(std::string_view input) {
  (void)options_in_job_script("train.sh", input, kSlurmScriptMark);
  if (const auto seconds = seconds_from_slurm(input)) require(*seconds >= 0, "a time is no time before now");
  if (check_slurm_pattern(input)) (void)filled_slurm_pattern(input, {12, 3}, "name", "user");
  (void)export_from_slurm(input);
  for (const SlurmOption& option : slurm_options())
    (void)wish_from_slurm({{std::string(option.name), std::string(input)}});
  const auto lines = options_in_job_script("train.sh", input);
  if (!lines) return;
  std::size_t length = 0;
  for (const JobScriptLine& line : *lines) {
    for (const std::string& word : line.words) length += word.size();
  }
  require(length <= input.size(), "options are a part of their script");
}

void read_workload(std::string_view input) {
  (void)workload_from_csv(input, "jobs.csv", 8);
}

}  // namespace berth::fuzz
