#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"

namespace berth::hub {

/// The configuration file of nvgpu's master.
struct NvgpuFile {
  struct Entry {
    std::string text;  ///< "self" or a URL
    unsigned line = 0;
  };
  std::vector<Entry> agents{{"self", 0}};
  std::string token;  ///< of all agents, "" for none: a key of Berth's nvgpu
};

/// Reads the Python of such a file: comments, texts, and assignments of literals, of which AGENTS and TOKEN
/// count. It executes nothing. Error: `failure`, with file, line and what is allowed.
Result<NvgpuFile> read_nvgpu_file(std::string_view path, std::string_view text);

/// Whether this is such a file and not TOML.
bool is_nvgpu_file(std::string_view path, std::string_view text);

}  // namespace berth::hub
