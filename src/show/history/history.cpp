#include "berth/history/history.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "berth/sys/clock.h"
#include "berth/sys/detached_thread.h"
#include "berth/view/answers_json.h"

namespace berth::history {
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
  struct Asked {
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
  bool ask(Asked& asked) {
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
    std::deque<Asked> questions;
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
    for (const Asked& asked : batch.questions) asked.answer(answer(asked.question));
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
      kept_ = Kept{question, answered, std::chrono::steady_clock::now() + kKept};
    return answered;
  }

  /// The last answer about hours.
  struct Kept {
    Question question;
    HistoryAnswer answer;
    std::chrono::steady_clock::time_point until;
  };

  HistoryWriter writer_;  // of the thread
  std::optional<Kept> kept_;
  std::chrono::steady_clock::time_point next_write_ = std::chrono::steady_clock::now() + kWriteEvery;

  mutable std::mutex mutex_;  // of what follows; never held while the disk is at work
  std::condition_variable bell_, finished_;
  std::deque<Observation> looks_;
  std::deque<Asked> questions_;
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
  Body::Asked asked{std::move(question), std::move(answer)};
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
