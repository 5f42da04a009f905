#pragma once

#include <string>

#include "berth/core/snapshot.h"
#include "berth/core/standing.h"

namespace berth::cli {

/// Whether a live line on the terminal of the error stream is in nobody's way.
bool may_draw();

/// Tells on the error stream how a wait goes: on a terminal one live line, as long as
/// we are in the foreground there, elsewhere a line at each change.
class WaitReport {
 public:
  /// `obeys_mask`: the request is for what an inherited mask shows; whoever waits is told so.
  WaitReport(std::string request_words, bool obeys_mask);

  void show(const Standing& standing, const Snapshot& snapshot);
  /// Whether what it shows tells the time.
  bool is_live() const { return terminal_; }
  /// Clears the live line.
  void end();

 private:
  std::string request_words_;
  bool obeys_mask_;
  bool terminal_;
  bool shown_ = false;
  std::string last_;  ///< what was told last, without how long
};

}  // namespace berth::cli
