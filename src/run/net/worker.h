#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "berth/net/listener.h"

namespace berth::net {

/// Does long work in a thread beside the loop, one thing after another, so that the loop can serve
/// all clients.
class Worker {
 public:
  explicit Worker(asio::io_context& loop) : loop_(loop) {}

  /// The result of `work`; the loop goes on while it waits for it. Error: `failure` if `work`
  /// threw, for example for lack of memory.
  template <class Work>
  Task<Result<std::invoke_result_t<Work>>> run(Work work) {
    using Made = std::invoke_result_t<Work>;
    struct Wait {
      explicit Wait(asio::io_context& loop) : timer(loop, Timer::time_point::max()) {}
      Timer timer;
      std::optional<Result<Made>> made;
    };
    const auto wait = std::make_shared<Wait>(loop_);
    // `work` is moved, so that the thread frees what it has, such as the text of an answer, and not
    // the loop.
    asio::post(thread_, [&loop = loop_, wait, work = std::move(work)]() mutable {
      auto made = std::make_shared<Result<Made>>(tried(work));
      asio::post(loop, [wait, made] {
        wait->made = std::move(*made);
        wait->timer.cancel();
      });
    });
    while (!wait->made) co_await wait->timer.async_wait(kAwait);
    co_return std::move(*wait->made);
  }

 private:
  template <class Work>
  static Result<std::invoke_result_t<Work>> tried(Work& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      return fail(ErrorCode::failure, std::string("it could not be worked out here: ") + error.what());
    }
  }

  asio::io_context& loop_;
  asio::thread_pool thread_{1};
};

}  // namespace berth::net
