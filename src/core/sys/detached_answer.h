#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <utility>

#include "berth/sys/detached_thread.h"

namespace berth::sys {

/// What work answers that may hang, such as a question to a driver or a file in a home directory. A
/// detached thread does the work, so that its asker can go on without it.
template <class T>
class DetachedAnswer {
 public:
  /// Nothing is asked.
  DetachedAnswer() = default;
  /// Begins `work`, which gives a T and must own what it uses. All that it has opened is closed
  /// when its answer is there: the process may end at once. If the system gives no thread, as under
  /// a limit on processes, there is no answer.
  template <class Work>
  explicit DetachedAnswer(Work work) {
    const auto promise = std::make_shared<std::promise<T>>();
    auto told = promise->get_future();
    try {
      begin_detached([promise, work = std::move(work)] { promise->set_value(work()); });
    } catch (const std::system_error&) {
      return;
    }
    told_ = std::move(told);
  }

  /// It was asked, and its answer was not taken.
  bool is_awaited() const { return told_.valid(); }
  /// The answer, to be called once. T{}: there is none, or none came within the patience.
  T within(std::chrono::milliseconds patience) {
    if (!told_.valid() || told_.wait_for(patience) != std::future_status::ready) return T{};
    return told_.get();
  }

 private:
  std::future<T> told_;
};

}  // namespace berth::sys
