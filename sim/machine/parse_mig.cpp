#include <cstdio>

#include "machine/parse_parts.h"

namespace berth::sim {
namespace {

struct Profile {
  unsigned compute_slices = 0;
  unsigned gpu_slices = 0;
  unsigned gigabytes = 0;
};

// "3g.40gb", "1g.10gb+me", or "1c.3g.40gb" for a part of an instance.
bool parse_profile(const std::string& text, Profile& profile) {
  int used = 0;
  unsigned& compute = profile.compute_slices;
  if (std::sscanf(text.c_str(), "%uc.%ug.%ugb%n", &compute, &profile.gpu_slices, &profile.gigabytes, &used) !=
      3) {
    used = 0;
    if (std::sscanf(text.c_str(), "%ug.%ugb%n", &profile.gpu_slices, &profile.gigabytes, &used) != 2)
      return false;
    compute = profile.gpu_slices;
  }
  const std::string rest = text.substr(static_cast<std::size_t>(used));
  return (rest.empty() || rest.starts_with("+")) && profile.gpu_slices >= 1 && profile.gpu_slices <= 7 &&
         compute >= 1 && compute <= profile.gpu_slices;
}

// The driver numbers GPU instances by size: 0 is the whole device, 1 and 2 its halves, and so on.
unsigned first_gpu_instance(unsigned slices) {
  if (slices == 7) return 0;
  if (slices >= 3) return 1;
  return slices == 2 ? 3 : 7;
}

unsigned free_gpu_instance(const Device& device, unsigned slices) {
  unsigned id = first_gpu_instance(slices);
  for (const Instance& other : device.instances)
    if (other.present && other.gpu_instance >= id &&
        first_gpu_instance(other.gpu_slices) == first_gpu_instance(slices))
      id = other.gpu_instance + 1;
  return id;
}

std::string instance_uuid(const Generation& generation, const Device& device, const Instance& instance,
                          std::size_t slot) {
  if (generation.old_mig_uuids())
    return "MIG-" + device.uuid + "/" + std::to_string(instance.gpu_instance) + "/" +
           std::to_string(instance.compute_instance);
  return "MIG-" + uuid_text(device.uuid + "/" + std::to_string(slot) + "/" + instance.profile);
}

Instance parse_instance(const toml::node& node, Table& device_table, Problems& problems,
                        const Generation& generation, const Device& device) {
  Instance instance;
  const toml::table empty;
  Table table(node.as_table() != nullptr ? *node.as_table() : empty, problems, "\"mig\"");
  if (const auto* text = node.as_string())
    instance.profile = text->get();
  else if (auto named = table.text("profile"))
    instance.profile = *named;
  if (instance.profile.empty() && node.is_string()) return instance;
  Profile profile;
  if (!parse_profile(instance.profile, profile)) {
    device_table.wrong(node,
                       "a MIG profile is written as \"3g.40gb\", \"1c.3g.40gb\", or \"\" for an empty slot");
    return instance;
  }
  instance.present = true;
  instance.gpu_slices = profile.gpu_slices;
  instance.compute_slices = profile.compute_slices;
  instance.multiprocessors = profile.compute_slices * (device.model.architecture >= 9 ? 16 : 14);
  instance.memory_bytes = (profile.gigabytes * 1024ULL - 256) * kMiB;  // 4864 MiB for 1g.5gb, as an A100 says
  instance.gpu_instance = free_gpu_instance(device, profile.gpu_slices);
  table.set("gpu_instance", instance.gpu_instance, 1000);
  table.set("compute_instance", instance.compute_instance, 1000);
  if (auto mib = table.integer("memory_mib", 1, 1LL << 40))
    instance.memory_bytes = static_cast<std::uint64_t>(*mib) * kMiB;
  instance.uuid = instance_uuid(generation, device, instance, device.instances.size());
  table.set("uuid", instance.uuid);
  table.finish();
  return instance;
}

}  // namespace

void parse_instances(Table& table, const Generation& generation, Device& device) {
  const toml::array* instances = table.array("mig");
  if (instances == nullptr) return;
  if (!device.model.mig) table.wrong("mig", std::string(device.model.name) + " has no MIG");
  if (instances->size() > 7) table.wrong("mig", "at most 7 MIG instances");
  device.mig_enabled = true;
  for (const toml::node& node : *instances)
    device.instances.push_back(parse_instance(node, table, table.problems(), generation, device));
}

void parse_processes(Table& table, Problems& problems, Device& device) {
  for (const toml::table* source : table.tables("process")) {
    Table entry(*source, problems, "[[device.process]]");
    Process process;
    const toml::node* pid = entry.any("pid");
    if (pid != nullptr && pid->is_string() && pid->as_string()->get() == "self")
      process.pid = 0;
    else if (pid != nullptr && pid->is_integer() && pid->as_integer()->get() > 0 &&
             pid->as_integer()->get() <= UINT32_MAX)
      process.pid = pid->as_integer()->get();
    else
      entry.wrong("pid", "[[device.process]] needs \"pid\": a number, or \"self\"");
    if (auto type = entry.one_of("type", {"C", "G", "C+G", "M+C"})) {
      constexpr unsigned kKinds[] = {kCompute, kGraphics, kCompute | kGraphics, kMps};
      process.kinds = kKinds[*type];
    }
    if (auto mib = entry.integer("used_mib", 0, 1LL << 40))
      process.used_bytes = static_cast<std::uint64_t>(*mib) * kMiB;
    entry.set("name", process.name);
    entry.set("ghost", process.ghost);
    entry.set("sm", process.sm_percent, 100);
    if (auto slot = entry.integer("mig", 0, 6)) {
      process.slot = static_cast<int>(*slot);
      const auto position = static_cast<std::size_t>(*slot);
      if (position >= device.instances.size() || !device.instances[position].present)
        entry.wrong("mig", "there is no MIG instance in slot " + std::to_string(*slot));
    }
    entry.finish();
    device.processes.push_back(std::move(process));
  }
}

}  // namespace berth::sim
