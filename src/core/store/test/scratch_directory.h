#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace berth {

/// A directory of a test's own that all users may enter, removed with all that is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() : path_("/tmp/berth-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    ::chmod(path_.c_str(), 01777);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace berth
