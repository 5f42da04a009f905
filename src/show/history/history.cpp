#include "berth/history/history.h"

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "berth/history/database.h"
#include "berth/sys/clock.h"
#include "berth/sys/job_process.h"
#include "berth/view/answers_json.h"
#include "berth/view/usage.h"

namespace berth::history {
namespace {

constexpr int kUnavailable = 503;

HistoryAnswer unavailable(std::string message) {
  return {kUnavailable, view::error_json({ErrorCode::failure, std::move(message)})};
}

HistoryAnswer unknown_device(const std::string& uuid, const std::vector<std::string>& known) {
  return {404,
          view::error_json({ErrorCode::usage, fmt::format("nothing is known of a device '{}'; there are {}",
                                                          uuid, fmt::join(known, ", "))})};
}

}  // namespace

void HistoryWriter::keep_in(std::optional<std::string> path, std::int64_t now_s) {
  if (path == path_) return;
  write(now_s);
  file_.reset();
  recorder_.reset();
  path_ = std::move(path);
  status_ = Status::off;
  reason_.clear();
  write(now_s);
}

void HistoryWriter::see(const Observation& observation) {
  every_s_ = observation.every_s;
  if (recorder_) recorder_->see(observation);
}

void HistoryWriter::write(std::int64_t now_s) {
  if (!path_) return;
  // If somebody has removed the file, nobody would ever read what is written there.
  if (file_ && !file_->is_still_there()) file_.reset();
  if (!file_ && !open(now_s)) return;
  if (auto done = write_and_thin(now_s); !done) {
    meet(done.error(), now_s);
  } else if (status_ != Status::ok) {
    become(Status::ok, "");
  }
}

Done<void> HistoryWriter::write_and_thin(std::int64_t now_s) {
  if (!recorder_->pending().empty()) {
    if (auto done = file_->write(recorder_->pending()); !done) {
      (void)file_->make_room(now_s);  // for the next time, where its bound is what it met
      return done;
    }
    recorder_->written();
    BERTH_DO(file_->make_room(now_s));
  }
  if (std::abs(now_s - thinned_s_) < kThinningEvery) return {};
  thinned_s_ = now_s;
  BERTH_DO(file_->thin(now_s));
  recorder_->name_all_devices();  // also one of which nothing was left
  return {};
}

bool HistoryWriter::open(std::int64_t now_s) {
  auto file = HistoryFile::open(*path_);
  std::string aside;
  if (!file && file.error().kind == DatabaseError::Kind::corrupt) {
    if (auto renamed = rename_corrupt(*path_, now_s); renamed) {
      aside = fmt::format("{} was corrupt ({}): it is now {}, and a new one begins", *path_,
                          file.error().message, *renamed);
      file = HistoryFile::open(*path_);
    } else {
      file = std::unexpected(renamed.error());
    }
  }
  auto known = file ? file->known(now_s) : std::unexpected(file.error());
  if (!known) {
    // If the file is so broken that it cannot be read, it is set aside when it is opened again.
    become(Status::failing, fmt::format("{}: {}", *path_,
                                        known.error().kind == DatabaseError::Kind::taken
                                            ? "another agent has it: end that, or name another file"
                                            : known.error().message));
    return false;
  }
  file_.emplace(std::move(*file));
  if (recorder_) {
    recorder_->name_all_devices();
  } else {
    recorder_.emplace(std::move(*known));
  }
  if (!aside.empty()) {
    say_("the history: " + aside);
    status_ = Status::ok;
    reason_ = aside;
  }
  return true;
}

void HistoryWriter::meet(const DatabaseError& fault, std::int64_t now_s) {
  if (fault.kind == DatabaseError::Kind::corrupt) {
    file_.reset();
    // The file is opened again. If it is broken, that finds the same fault and sets the file aside.
    if (open(now_s)) return;
  }
  become(Status::failing, fmt::format("{}: {}", *path_, fault.message));
}

void HistoryWriter::become(Status status, const std::string& reason) {
  if (status == Status::failing && status_ != Status::failing)
    say_(fmt::format("the history is not written: {}; serving on, and trying again", reason));
  if (status == Status::ok && status_ == Status::failing) say_("the history is written again");
  status_ = status;
  reason_ = reason;
}

view::HistoryHealth HistoryWriter::health() const {
  return {status_, reason_, recorder_ ? recorder_->lost() : 0};
}

HistoryAnswer HistoryWriter::answer(const Question& question, std::int64_t now_s) {
  if (!path_) return unavailable("no history is kept here: the agent was started with --no-history");
  if (!file_) return unavailable("there is no history at the moment: " + reason_);
  auto answered = answer_from_file(question, now_s);
  if (answered) return std::move(*answered);
  meet(answered.error(), now_s);
  return unavailable("reading the history: " + answered.error().message);
}

Done<HistoryAnswer> HistoryWriter::answer_from_file(const Question& question, std::int64_t now_s) {
  constexpr auto kLine = view::Layout::line;
  if (const auto* usage = std::get_if<UsageQuestion>(&question)) {
    BERTH_LET(const auto found, file_->usage(usage->by, {step_of(now_s - usage->since_s, 3600), now_s}));
    return HistoryAnswer{200, view::usage_json(found, kLine)};
  }
  if (const auto* leases = std::get_if<LeasesQuestion>(&question)) {
    BERTH_LET(const auto found, file_->recorded_leases(*leases, now_s));
    return HistoryAnswer{200, view::recorded_leases_json(found, kLine)};
  }
  DeviceQuestion device = std::get<DeviceQuestion>(question);
  device.least_step_s = every_s_;
  BERTH_LET(const auto found, file_->device_history(device, now_s));
  if (found) return HistoryAnswer{200, view::device_history_json(*found, kLine)};
  BERTH_LET(const auto known, file_->device_uuids());
  return unknown_device(device.uuid, known);
}

namespace {

using namespace std::chrono_literals;

constexpr auto kWriteEvery = 30s;        // what kill -9 may cost at most
constexpr std::size_t kMostLooks = 256;  // that may wait for the thread
constexpr std::size_t kMostQuestions = 64;
constexpr auto kKept = 10s;  // an answer about hours

std::int64_t wall_now_s() {
  return std::chrono::floor<std::chrono::seconds>(sys::wall_now()).count();
}

}  // namespace

class History::Body {
 public:
  struct PendingQuestion {
    Question question;
    std::function<void(HistoryAnswer)> answer;
  };

  Body(HistoryWriter::Say say, std::chrono::milliseconds patience)
      : writer_(std::move(say)), patience_(patience) {}

  void keep_in(std::optional<std::string> path) {
    const std::scoped_lock lock(mutex_);
    is_off_ = !path;
    keep_in_ = std::move(path);
    bell_.notify_one();
  }

  void see(Observation observation) {
    const std::scoped_lock lock(mutex_);
    if (is_off_) return;
    if (looks_.size() >= kMostLooks) looks_.pop_front();
    looks_.push_back(std::move(observation));
    if (looks_.size() == kMostLooks / 2) bell_.notify_one();
  }

  /// False: too many ask, and this one was not taken.
  bool ask(PendingQuestion& asked) {
    const std::scoped_lock lock(mutex_);
    if (questions_.size() >= kMostQuestions) return false;
    questions_.push_back(std::move(asked));
    bell_.notify_one();
    return true;
  }

  view::HistoryHealth health() const {
    const std::scoped_lock lock(mutex_);
    view::HistoryHealth health = health_;
    if (busy_since_ && std::chrono::steady_clock::now() - *busy_since_ > patience_) {
      health.status = view::HistoryHealth::Status::failing;
      health.reason = "the disk does not answer; what is seen meanwhile is kept for a while";
    }
    return health;
  }

  bool finish(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    ending_ = true;
    bell_.notify_one();
    return finished_.wait_for(lock, patience, [&] { return has_finished_; });
  }

  void work() {
    for (bool goes_on = true; goes_on;) goes_on = work_off_batch();
  }

 private:
  struct Batch {
    std::deque<Observation> looks;
    std::deque<PendingQuestion> questions;
    std::optional<std::optional<std::string>> keep_in;
    bool ending = false;
  };

  Batch next_batch() {
    std::unique_lock lock(mutex_);
    bell_.wait_until(lock, next_write_, [&] {
      return ending_ || keep_in_ || !questions_.empty() || looks_.size() >= kMostLooks / 2;
    });
    busy_since_ = std::chrono::steady_clock::now();
    return {std::exchange(looks_, {}), std::exchange(questions_, {}), std::exchange(keep_in_, std::nullopt),
            ending_};
  }

  bool work_off_batch() {
    Batch batch = next_batch();
    if (batch.keep_in) writer_.keep_in(std::move(*batch.keep_in), wall_now_s());
    for (const Observation& look : batch.looks) writer_.see(look);
    writer_.write(wall_now_s());
    next_write_ = std::chrono::steady_clock::now() + kWriteEvery;
    if (batch.keep_in) kept_.reset();
    for (const PendingQuestion& asked : batch.questions) asked.answer(answer(asked.question));
    const std::scoped_lock lock(mutex_);
    health_ = writer_.health();
    busy_since_.reset();
    has_finished_ = batch.ending;
    if (batch.ending) finished_.notify_all();
    return !batch.ending;
  }

  /// Hours of a year take a second to add up, and all who have a page open ask for the same.
  HistoryAnswer answer(const Question& question) {
    const auto now = std::chrono::steady_clock::now();
    if (kept_ && kept_->question == question && now < kept_->until) return kept_->answer;
    HistoryAnswer answered = writer_.answer(question, wall_now_s());
    if (answered.http_status == 200 && std::holds_alternative<UsageQuestion>(question))
      kept_ = KeptAnswer{question, answered, std::chrono::steady_clock::now() + kKept};
    return answered;
  }

  /// The last answer about hours.
  struct KeptAnswer {
    Question question;
    HistoryAnswer answer;
    std::chrono::steady_clock::time_point until;
  };

  HistoryWriter writer_;  // of the thread
  std::optional<KeptAnswer> kept_;
  std::chrono::steady_clock::time_point next_write_ = std::chrono::steady_clock::now() + kWriteEvery;

  mutable std::mutex mutex_;  // of what follows; never held while the disk is at work
  std::condition_variable bell_, finished_;
  std::deque<Observation> looks_;
  std::deque<PendingQuestion> questions_;
  std::optional<std::optional<std::string>> keep_in_;
  bool is_off_ = true;
  bool ending_ = false;
  bool has_finished_ = false;
  view::HistoryHealth health_;
  std::optional<std::chrono::steady_clock::time_point> busy_since_;
  const std::chrono::milliseconds patience_;
};

History::History(std::function<void(const std::string&)> say, std::chrono::milliseconds patience)
    : body_(std::make_shared<Body>(std::move(say), patience)) {
  sys::begin_detached([body = body_] { body->work(); });
}

void History::keep_in(std::optional<std::string> path) {
  body_->keep_in(std::move(path));
}

void History::see(Observation observation) {
  body_->see(std::move(observation));
}

void History::ask(Question question, std::function<void(HistoryAnswer)> answer) {
  Body::PendingQuestion asked{std::move(question), std::move(answer)};
  if (body_->ask(asked)) return;
  asked.answer({503, view::error_json({ErrorCode::failure, "the history is slow; ask again in a moment"})});
}

view::HistoryHealth History::health() const {
  return body_->health();
}

bool History::finish(std::chrono::milliseconds patience) {
  return body_->finish(patience);
}

}  // namespace berth::history
