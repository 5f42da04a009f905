#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "berth/net/listener.h"

namespace berth::serve {

/// Does what takes long beside the loop, one thing after another, so that the loop is there for everybody.
class Worker {
 public:
  explicit Worker(asio::io_context& loop) : loop_(loop) {}

  /// What `work` has made, waited for in the loop. Error: `failure`, when it threw, as for want of memory.
  template <class Work>
  asio::awaitable<Result<std::invoke_result_t<Work>>, Executor> run(Work work) {
    using Made = std::invoke_result_t<Work>;
    struct Wait {
      explicit Wait(asio::io_context& loop) : timer(loop, Timer::time_point::max()) {}
      Timer timer;
      std::optional<Result<Made>> made;
    };
    const auto wait = std::make_shared<Wait>(loop_);
    // The text of an answer goes where it is done with, not where it is waited for.
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

}  // namespace berth::serve
