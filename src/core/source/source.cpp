#include "berth/source/source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "berth/source/amd/amd_reader.h"
#include "berth/source/nvidia_smi/nvidia_smi_reader.h"
#include "berth/source/nvml/nvml_reader.h"
#include "berth/source/proc/kernel_files.h"
#include "berth/sys/file.h"

namespace berth::source {

std::optional<SourceKind> source_kind_from_text(std::string_view text) {
  if (text == SourceKind::kAutomatic.name()) return SourceKind::kAutomatic;
  const auto table = source_table();
  const auto row = std::ranges::find(table, text, &SourceRow::name);
  return row == table.end() ? std::nullopt : std::optional(SourceKind(row->name));
}

bool read_value(std::string_view text, SourceKind& kind) {
  const auto known = source_kind_from_text(text);
  kind = known.value_or(kind);
  return known.has_value();
}

std::string_view to_text(SourceKind kind) {
  return kind.name();
}

std::vector<std::string_view> source_names() {
  std::vector<std::string_view> names;
  for (const SourceRow& row : source_table()) names.push_back(row.name);
  names.push_back(SourceKind::kAutomatic.name());
  return names;
}

namespace {

using Made = std::unique_ptr<Reader>;

constexpr std::array kSources{
    SourceRow{"nvml", "nvidia", [](int) -> Made { return std::make_unique<nvml::NvmlReader>(); }},
    SourceRow{"nvidia-smi", "nvidia",
              [](int listener) -> Made { return std::make_unique<nvidia_smi::NvidiaSmiReader>(listener); }},
    SourceRow{"amd", "amd",
              [](int) -> Made { return std::make_unique<amd::AmdReader>(kernel_files::roots_in_force()); }}};

}  // namespace

std::span<const SourceRow> source_table() {
  return kSources;
}

namespace {

/// Between devices of two vendors nothing is known but that both are in one
/// machine.
Topology side_by_side(const Topology& a, const Topology& b) {
  Topology both{a.uuids, {}};
  both.uuids.insert(both.uuids.end(), b.uuids.begin(), b.uuids.end());
  const std::size_t first = a.uuids.size(), count = both.uuids.size();
  both.links.resize(count * count);
  for (std::size_t i = 0; i < first; ++i)
    for (std::size_t j = 0; j < first; ++j) both.links[i * count + j] = a.links[i * first + j];
  for (std::size_t i = first; i < count; ++i)
    for (std::size_t j = first; j < count; ++j)
      both.links[i * count + j] = b.links[(i - first) * b.uuids.size() + (j - first)];
  return both;
}

}  // namespace

void SnapshotJoiner::head(const Snapshot& head) {
  // The first that has a device speaks for all.
  if (!sent_) head_ = head;
}

void SnapshotJoiner::send_head() {
  if (sent_ || !head_) return;
  sink_.head(*head_);
  sent_ = true;
}

void SnapshotJoiner::begin(const Stage& stage) {
  send_head();
  Stage here = stage;
  here.index += before_;
  here.count += before_;
  sink_.begin(here);
}

void SnapshotJoiner::device(const Device& device) {
  send_head();
  Device here = device;
  here.index += before_;
  count_ = std::max(count_, here.index + 1);
  sink_.device(here);
}

void SnapshotJoiner::topology(const Topology& topology) {
  topology_ = topology_ ? side_by_side(*topology_, topology) : topology;
}

void SnapshotJoiner::note(std::string_view note) {
  send_head();
  if (sent_) sink_.note(note);
}

void SnapshotJoiner::next() {
  before_ = count_;
}

bool SnapshotJoiner::finish() {
  send_head();
  if (sent_ && topology_) sink_.topology(*topology_);
  return sent_;
}

namespace {

bool is_device_file(const std::string& path, const Vendor& vendor) {
  return std::ranges::any_of(vendor.device_files, [&](std::string_view pattern) {
    if (!pattern.ends_with('#')) return path == pattern;
    pattern.remove_suffix(1);
    return path.size() > pattern.size() && path.starts_with(pattern) &&
           path.find_first_not_of("0123456789", pattern.size()) == std::string::npos;
  });
}

/// The names of files in /dev, and in those of its folders that a vendor has files in, below /dev.
std::vector<std::string> names_in_dev(const Vendor& vendor) {
  std::vector<std::string> names;
  std::set<std::string> folders{""};
  for (const std::string_view pattern : vendor.device_files) {
    const std::size_t slash = pattern.rfind('/');
    if (slash != std::string_view::npos) folders.emplace(pattern.substr(0, slash + 1));
  }
  for (const std::string& folder : folders) {
    const auto opened = sys::open_directory(AT_FDCWD, "/dev/" + folder);
    if (!opened || !*opened) continue;
    const auto entries = sys::list_directory(opened->get());
    if (!entries) continue;
    for (const sys::DirectoryEntry& entry : *entries) names.push_back(folder + entry.name);
  }
  return names;
}

}  // namespace

DeviceFiles device_files(std::span<const Vendor> vendors) {
  DeviceFiles files;
  for (const Vendor& vendor : vendors) {
    for (const std::string& name : names_in_dev(vendor)) {
      if (!is_device_file(name, vendor)) continue;
      ++files.seen;
      std::string path = "/dev/" + name;
      if (::access(path.c_str(), R_OK | W_OK) != 0) files.shut.push_back(std::move(path));
    }
  }
  return files;
}

}  // namespace berth::source
