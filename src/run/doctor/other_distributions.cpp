#include "berth/doctor/other_distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace berth::command {
namespace {

namespace fs = std::filesystem;

// As pip writes a distribution's name into the name of its folder.
constexpr std::array<std::string_view, 5> kOriginals{"gpu_scheduler", "gpu_utilities", "gpuselect", "nvgpu",
                                                     "safe_gpu"};

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator each(folder, ignored), end; each != end; each.increment(ignored))
    found.push_back(each->path());
  std::ranges::sort(found);
  return found;
}

/// The names of the folders that pip leaves of a distribution.
std::vector<std::string> installed(const fs::path& prefix) {
  std::vector<std::string> names;
  for (const fs::path& python : children(prefix / "lib")) {
    if (!python.filename().native().starts_with("python3")) continue;
    for (const fs::path& entry : children(python / "site-packages")) {
      if (entry.extension() == ".dist-info") names.push_back(entry.stem());
    }
  }
  return names;
}

bool any_begins(const std::vector<std::string>& names, std::string_view beginning) {
  return std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(beginning); });
}

void look_for_originals(const std::vector<std::string>& names, std::vector<view::Finding>& findings) {
  if (!any_begins(names, "berth_gpu_dropin-")) return;
  for (const std::string_view original : kOriginals) {
    if (!any_begins(names, fmt::format("{}-", original))) continue;
    findings.push_back(
        {view::Level::warn, "drop-ins",
         fmt::format("the original {} is installed beside berth-gpu-dropin, which has the same module",
                     original),
         // pip takes the files that both have with the original, and finds berth-gpu-dropin in no
         // index.
         fmt::format("in a checkout of Berth: pip uninstall -y {} && "
                     "pip install --force-reinstall --no-deps ./python/dropin",
                     original)});
  }
}

// PyPI's `berth` is another project, with a module and a program of the same name.
void look_for_other_berth(const std::vector<std::string>& names, std::vector<view::Finding>& findings) {
  if (!any_begins(names, "berth_gpu-") || !any_begins(names, "berth-")) return;
  findings.push_back({view::Level::warn, "Python package",
                      "another project named berth is installed here beside berth-gpu, and both have the "
                      "module and the program berth",
                      "in a checkout of Berth: pip uninstall -y berth && "
                      "pip install --force-reinstall --no-deps ."});
}

}  // namespace

std::vector<view::Finding> distributions_beside_ours(const fs::path& program) {
  const std::vector<std::string> names = installed(program.parent_path().parent_path());
  std::vector<view::Finding> findings;
  look_for_other_berth(names, findings);
  look_for_originals(names, findings);
  return findings;
}

}  // namespace berth::command
