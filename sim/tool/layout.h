#pragma once

#include <string>

namespace berth::sim {

/// Where the doubles lie, seen from the running program: beside it in a build tree, or in
/// ../lib/berth/sim.
struct Layout {
  std::string root;  // "" if there is none
  [[nodiscard]] std::string libraries(const std::string& generation) const { return root + "/" + generation; }
  [[nodiscard]] std::string programs() const { return root + "/bin"; }
};

Layout find_layout();

/// The file for a machine written as NxMODEL, made if needed in a directory of this user's own.
/// Returns "" and the path, or what went wrong.
std::string machine_file(const std::string& name, const std::string& text, std::string& path);

/// An existing directory without the libraries; with files that cannot be loaded in their place if
/// the system has real ones, which would be found instead.
std::string directory_without_libraries(const std::string& state_directory);

}  // namespace berth::sim
