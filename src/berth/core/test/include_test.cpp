#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace {

TEST_CASE("the core includes only what computes: no system, clock, file, thread or printing") {
  const std::set<std::string> allowed{
      "<algorithm>", "<array>",    "<bit>",          "<bitset>",   "<charconv>",    "<chrono>",
      "<cmath>",     "<compare>",  "<concepts>",     "<cstddef>",  "<cstdint>",     "<cstring>",
      "<deque>",     "<expected>", "<functional>",   "<iterator>", "<limits>",      "<list>",
      "<map>",       "<memory>",   "<numeric>",      "<optional>", "<ranges>",      "<set>",
      "<span>",      "<string>",   "<string_view>",  "<tuple>",    "<type_traits>", "<utility>",
      "<variant>",   "<vector>",   "<fmt/format.h>", "<version>"};
  const std::filesystem::path core(BERTH_SOURCE_DIR "/src/berth/core");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(core)) {
    if (entry.is_directory()) continue;
    ++files;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      CHECK_MESSAGE(line.find("_clock::") == std::string::npos, entry.path().string(), ": ", line);
      if (!line.starts_with("#include ")) continue;
      const std::string what = line.substr(9);
      CHECK_MESSAGE((allowed.contains(what) || what.starts_with("\"berth/core/")), entry.path().string(),
                    ": ", line);
    }
  }
  CHECK(files > 30);
}

}  // namespace
