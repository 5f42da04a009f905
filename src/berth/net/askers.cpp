#include "berth/net/askers.h"

#include <exception>
#include <mutex>
#include <utility>

#include "berth/sys/detached_thread.h"
#include "berth/sys/file.h"

namespace berth::net {
namespace {

using namespace std::chrono_literals;

/// A user who is put into another group has its limit then.
constexpr auto kNamesAreKept = 60s;

}  // namespace

/// A thread whose question is never answered stays, and touches nothing but this.
struct Askers::Question {
  std::chrono::steady_clock::time_point asked_at = std::chrono::steady_clock::now();
  std::mutex mutex;
  std::optional<Asker> answer;

  std::optional<Asker> heard() {
    const std::scoped_lock lock(mutex);
    return answer;
  }
};

std::optional<Asker> Askers::find(std::uint32_t uid) {
  std::shared_ptr<Question>& question = questions_[uid];
  if (question) {
    auto answer = question->heard();
    if (!answer || std::chrono::steady_clock::now() - question->asked_at < kNamesAreKept) return answer;
  }
  try {
    question = std::make_shared<Question>();
    sys::begin_detached([question, uid] {
      Asker asker{uid, sys::user_name(uid), sys::group_names_of(uid)};
      const std::scoped_lock lock(question->mutex);
      question->answer = std::move(asker);
    });
  } catch (const std::exception&) {
    // No thread, or no memory for one: nobody has asked. The next call does.
    question.reset();
  }
  return std::nullopt;
}

}  // namespace berth::net
