#pragma once

#include <string>

#include "berth/device/snapshot.h"
#include "berth/queue/standing.h"

namespace berth::supervise {

/// Whether a live line on the terminal of the error stream disturbs nothing.
bool may_draw();

/// Tells on the error stream how a wait goes: on a terminal, as long as we are in the foreground
/// there, one live line; elsewhere a line at each change.
class WaitReport {
 public:
  /// `obeys_mask`: the request is for devices that an inherited mask shows; the report says so.
  /// `enters_queue`: it says how to leave the queue, and how not to enter it.
  WaitReport(std::string request_words, bool obeys_mask, bool enters_queue);

  void show(const Standing& standing, const Snapshot& snapshot);
  /// Whether what it shows changes with the time.
  bool is_live() const { return terminal_; }
  /// Clears the live line.
  void end();

 private:
  std::string request_words_;
  bool obeys_mask_;
  bool terminal_;
  bool enters_queue_;
  bool shown_ = false;
  std::string last_;  ///< what was told last, without the time
};

}  // namespace berth::supervise
