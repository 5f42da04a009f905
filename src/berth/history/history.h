#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "berth/history/history_writer.h"
#include "berth/history/observation.h"

namespace berth::history {

/// Keeps the history of this machine in a file, in a thread of its own: whoever calls never waits for the
/// disk. What the disk does not take is kept for a while and tried again.
class History {
 public:
  /// `say` gets a line for the admin whenever it stops or goes on being written, in that thread. A disk that
  /// takes longer than `patience` is told as a fault by `health`.
  explicit History(std::function<void(const std::string&)> say,
                   std::chrono::milliseconds patience = std::chrono::seconds(30));

  /// From any thread: keeps it in this file from now on; nullopt: nowhere.
  void keep_in(std::optional<std::string> path);
  /// From any thread. Where too much waits to be written, the oldest look goes.
  void see(Observation observation);
  /// From any thread. About hours, who asks the same within ten seconds is answered the same. `answer` is
  /// called in the history's thread or in this one; never, when the disk hangs.
  void ask(Question question, std::function<void(HistoryAnswer)> answer);
  /// From any thread.
  render::HistoryHealth health() const;
  /// Writes what is left. False: it took longer than `patience`.
  bool finish(std::chrono::milliseconds patience);

 private:
  class Body;
  std::shared_ptr<Body> body_;  // the thread may outlive this, inside of a disk that hangs
};

}  // namespace berth::history
