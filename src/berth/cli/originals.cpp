#include "berth/cli/originals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace berth::cli {
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

}  // namespace

std::vector<render::Finding> originals_beside_dropins(const fs::path& program) {
  const std::vector<std::string> names = installed(program.parent_path().parent_path());
  const auto begins = [](std::string beginning) {
    return
        [beginning = std::move(beginning)](const std::string& name) { return name.starts_with(beginning); };
  };
  std::vector<render::Finding> findings;
  if (std::ranges::none_of(names, begins("berth_dropin-"))) return findings;
  for (const std::string_view original : kOriginals) {
    if (std::ranges::none_of(names, begins(fmt::format("{}-", original)))) continue;
    findings.push_back(
        {render::Level::warn, "drop-ins",
         fmt::format("the original {} is installed beside berth-dropin, which has the same module", original),
         // pip takes the files that both have with the original, and finds berth-dropin in no index.
         fmt::format("in a checkout of Berth: pip uninstall -y {} && "
                     "pip install --force-reinstall --no-deps ./python/dropin",
                     original)});
  }
  return findings;
}

}  // namespace berth::cli
