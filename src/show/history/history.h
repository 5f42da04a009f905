#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "berth/history/history_writer.h"
#include "berth/history/model/observation.h"

namespace berth::history {

/// Keeps the history of this machine in a file, in a thread of its own, so that a caller never
/// waits for the disk. If a write fails, the data is kept for a while and written later.
class History {
 public:
  /// `say` gets a line for the admin, in that thread, when writing fails and when it works again.
  /// If the disk takes longer than `patience`, `health` reports a fault.
  explicit History(std::function<void(const std::string&)> say,
                   std::chrono::milliseconds patience = std::chrono::seconds(30));

  /// Keeps the history in this file from now on; nullopt: in no file. May be called in any thread.
  void keep_in(std::optional<std::string> path);
  /// May be called in any thread. If too much waits to be written, the oldest look is dropped.
  void see(Observation observation);
  /// May be called in any thread. The same question about hours gets the same answer within ten
  /// seconds. `answer` is called in the history's thread or in this one; if the disk hangs, it is
  /// never called.
  void ask(Question question, std::function<void(HistoryAnswer)> answer);
  /// From any thread.
  view::HistoryHealth health() const;
  /// Writes what is not written yet. False: it took longer than `patience`.
  bool finish(std::chrono::milliseconds patience);

 private:
  class Body;
  std::shared_ptr<Body> body_;  // the thread may outlive this object, if the disk hangs
};

}  // namespace berth::history
