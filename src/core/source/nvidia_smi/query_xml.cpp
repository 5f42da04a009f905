#include "berth/source/nvidia_smi/query_xml.h"

#include <algorithm>
#include <optional>

#include "berth/base/record.h"

namespace berth::nvidia_smi {
namespace {

/// The text between <name> or <name …> and </name>, for the first such element; `text` goes on
/// behind it. The report is made by a program and has no element inside one of the same name,
/// comments or CDATA.
std::optional<std::string_view> next_element(std::string_view& text, std::string_view name) {
  const std::string open = "<" + std::string(name);
  const std::string close = "</" + std::string(name) + ">";
  for (std::size_t at = text.find(open); at != std::string_view::npos; at = text.find(open, at + 1)) {
    const std::size_t after = at + open.size();
    if (after < text.size() && text[after] != '>' && text[after] != ' ') continue;
    const std::size_t begin = text.find('>', after);
    const std::size_t end = text.find(close, after);
    if (begin == std::string_view::npos || end == std::string_view::npos || begin > end) return std::nullopt;
    const std::string_view inner = text.substr(begin + 1, end - begin - 1);
    text.remove_prefix(end + close.size());
    return inner;
  }
  return std::nullopt;
}

/// The text of the first element of this name, "" if there is none.
std::string_view element(std::string_view text, std::string_view name) {
  return next_element(text, name).value_or(std::string_view{});
}

Reading<unsigned> unsigned_number(std::string_view text) {
  return number_from_text<unsigned>(text);
}

/// "N/A" where the GPU has no such thing.
Reading<bool> yes_or_no(std::string_view text) {
  if (text == "Yes") return true;
  if (text == "No") return false;
  return std::nullopt;
}

/// "512 MiB".
Reading<std::uint64_t> amount(std::string_view text) {
  const auto value = number_from_text<std::uint64_t>(text.substr(0, text.find(' ')));
  return value ? Reading<std::uint64_t>(*value << 20U) : std::nullopt;
}

ProcessKind kind_of(std::string_view type) {
  if (type == "G") return ProcessKind::graphics;
  return type.contains('G') ? ProcessKind::compute_and_graphics : ProcessKind::compute;
}

Reading<std::vector<ReportedProcess>> parse_processes(std::string_view gpu) {
  auto list = next_element(gpu, "processes");
  if (!list || list->starts_with("N/A") || list->starts_with("[")) return std::nullopt;
  std::vector<ReportedProcess> processes;
  while (const auto info = next_element(*list, "process_info")) {
    const auto pid = unsigned_number(element(*info, "pid"));
    if (!pid) continue;
    ReportedProcess& reported = processes.emplace_back();
    reported.process.pid = *pid;
    reported.process.kind = kind_of(element(*info, "type"));
    reported.process.used_bytes = amount(element(*info, "used_memory"));
    reported.gpu_instance = unsigned_number(element(*info, "gpu_instance_id"));
    reported.compute_instance = unsigned_number(element(*info, "compute_instance_id"));
  }
  return processes;
}

std::vector<ReportedInstance> parse_instances(std::string_view gpu) {
  std::vector<ReportedInstance> instances;
  std::string_view list = element(gpu, "mig_devices");
  while (const auto device = next_element(list, "mig_device")) {
    const auto slot = unsigned_number(element(*device, "index"));
    if (!slot) continue;
    ReportedInstance& instance = instances.emplace_back();
    instance.placement.slot = *slot;
    instance.placement.gpu_instance = unsigned_number(element(*device, "gpu_instance_id"));
    instance.placement.compute_instance = unsigned_number(element(*device, "compute_instance_id"));
    const std::string_view memory = element(*device, "fb_memory_usage");
    instance.memory.total_bytes = amount(element(memory, "total"));
    instance.memory.reserved_bytes = amount(element(memory, "reserved"));
    instance.memory.used_bytes = amount(element(memory, "used"));
    instance.memory.free_bytes = amount(element(memory, "free"));
  }
  return instances;
}

/// The text between `before` and `after`.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  return text.substr(0, text.find(after));
}

}  // namespace

std::vector<ReportedGpu> parse_report(std::string_view xml) {
  std::vector<ReportedGpu> gpus;
  while (const auto gpu = next_element(xml, "gpu")) {
    const std::string_view rows = element(*gpu, "remapped_rows");
    gpus.push_back({.uuid = std::string(element(*gpu, "uuid")),
                    .row_remap_pending = yes_or_no(element(rows, "remapped_row_pending")),
                    .row_remap_failed = yes_or_no(element(rows, "remapped_row_failure")),
                    .processes = parse_processes(*gpu),
                    .instances = parse_instances(*gpu)});
  }
  return gpus;
}

std::vector<ListedInstance> parse_list(std::string_view text) {
  // GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-…)
  //   MIG 1g.5gb      Device  0: (UUID: MIG-…)
  std::vector<ListedInstance> instances;
  std::string parent;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    const std::string_view uuid = between(line, "(UUID: ", ")");
    if (line.starts_with("GPU ")) parent = uuid;
    std::string_view slot = between(line, "Device", ":");
    slot.remove_prefix(std::min(slot.find_first_not_of(' '), slot.size()));
    const auto number_of_slot = unsigned_number(slot);
    if (!line.starts_with("  MIG ") || uuid.empty() || !number_of_slot) continue;
    instances.push_back({.parent_uuid = parent,
                         .slot = *number_of_slot,
                         .profile = std::string(between(line, "MIG ", " ")),
                         .uuid = std::string(uuid)});
  }
  return instances;
}

}  // namespace berth::nvidia_smi
