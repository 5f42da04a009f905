#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "berth/history/history_file.h"
#include "berth/history/model/usage_recorder.h"
#include "berth/usage/usage.h"
#include "berth/view/answers_json.h"

namespace berth::history {

using Question = std::variant<DeviceQuestion, UsageQuestion, LeasesQuestion>;

struct HistoryAnswer {
  int http_status = 200;
  std::string json;  ///< the document, or the document of the error
};

/// Writes what was seen into the file, whatever happens to the file meanwhile. Waits for the disk.
class HistoryWriter {
 public:
  using Say = std::function<void(const std::string&)>;

  explicit HistoryWriter(Say say) : say_(std::move(say)) {}

  /// nullopt: into no file.
  void keep_in(std::optional<std::string> path, std::int64_t now_s);
  /// Does not keep what is seen before the file was opened for the first time, because only the
  /// file says what is known of the leases.
  void see(const Observation& observation);
  /// Opens the file if it is not open, writes what is pending, and thins.
  void write(std::int64_t now_s);
  HistoryAnswer answer(const Question& question, std::int64_t now_s);
  view::HistoryHealth health() const;

 private:
  using Status = view::HistoryHealth::Status;
  bool open(std::int64_t now_s);
  Done<void> write_and_thin(std::int64_t now_s);
  void meet(const DatabaseError& fault, std::int64_t now_s);
  void become(Status status, const std::string& reason);
  Done<HistoryAnswer> answer_from_file(const Question& question, std::int64_t now_s);

  Say say_;
  std::optional<std::string> path_;
  std::optional<HistoryFile> file_;
  std::optional<Recorder> recorder_;
  std::int64_t every_s_ = 1;
  std::int64_t thinned_s_ = 0;
  Status status_ = Status::off;
  std::string reason_;
};

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
