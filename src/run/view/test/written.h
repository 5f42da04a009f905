#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

// Files of the repository that are written from a table.
namespace berth::view::test {

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(BERTH_SOURCE_DIR + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Checks that the file is as the table says, or writes it anew for `./dev readings`.
inline void check_written(const std::string& path, const std::string& fresh) {
  if (std::getenv("BERTH_WRITE_READINGS") != nullptr) {
    std::ofstream(BERTH_SOURCE_DIR + path) << fresh;
    return;
  }
  INFO(path, " is not what its table says: ./dev readings writes it");
  CHECK(fresh == text_of_file(path));
}

}  // namespace berth::view::test
