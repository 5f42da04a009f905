#pragma once

#include <string>

#include "berth/core/snapshot.h"
#include "berth/core/standing.h"

namespace berth::cli {

/// Tells on the error stream how a wait goes: on a terminal one live line, elsewhere a line at each change.
class WaitReport {
 public:
  explicit WaitReport(std::string request_words);

  void show(const Standing& standing, const Snapshot& snapshot);
  /// Whether what it shows tells the time.
  bool is_live() const { return terminal_; }
  /// Clears the live line.
  void end();

 private:
  std::string request_words_;
  bool terminal_;
  bool shown_ = false;
  std::string last_;  ///< what was told last, without how long
};

}  // namespace berth::cli
