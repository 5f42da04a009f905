#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"

namespace berth::serve {

/// What nvgpu's master is told in its configuration file.
struct NvgpuFile {
  struct Entry {
    std::string text;  ///< "self" or a URL
    unsigned line = 0;
  };
  std::vector<Entry> agents{{"self", 0}};
  std::string token;  ///< of all agents, "" for none: nvgpu of Berth has it
};

/// Reads the Python of such a file: assignments of literals, of which AGENTS and TOKEN count, comments and
/// texts. Nothing is executed. Error: `failure`, with file, line and what is allowed.
Result<NvgpuFile> read_nvgpu_file(std::string_view path, std::string_view text);

/// Whether this is such a file and no TOML.
bool is_nvgpu_file(std::string_view path, std::string_view text);

}  // namespace berth::serve
