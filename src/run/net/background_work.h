#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/http/answer.h"
#include "berth/net/listener.h"
#include "berth/sys/job_process.h"
#include "berth/verdict/site_policy.h"

namespace berth::net {

/// Adds one to a count, as long as this object lives.
class Count {
 public:
  explicit Count(std::size_t& counter) : counter_(counter) { ++counter_; }
  ~Count() { --counter_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  std::size_t& counter_;
};

/// Does long work in a thread beside the loop, one thing after another, so that the loop can serve
/// all clients.
class Worker {
 public:
  explicit Worker(asio::io_context& loop) : loop_(loop) {}

  /// The result of `work`; the loop goes on while it waits for it. Error: `failure` if `work`
  /// threw, for example for lack of memory.
  template <class Work>
  Coroutine<Result<std::invoke_result_t<Work>>> run(Work work) {
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

/// Answers that take some time. The loop goes on meanwhile.
class BackgroundAnswers {
 public:
  explicit BackgroundAnswers(asio::io_context& loop) : loop_(loop), worker_(loop) {}

  void set_patience(std::chrono::seconds patience) { patience_ = patience; }

  /// The reply may come in another thread, before or after this returns, or never.
  Coroutine<http::Page> run(const http::ServiceCall& service_call);
  /// An answer made from what was published under this number. It is made once for all clients that
  /// ask for the same `target`.
  Coroutine<http::Page> answer(const http::Question& question, std::string target, std::uint64_t number);

 private:
  struct SharedAnswer {
    std::optional<http::Page> page;
    std::vector<std::shared_ptr<Timer>> waiting;
  };

  Coroutine<http::Page> work_out(const http::Question& question);
  Coroutine<http::Page> wait_for(std::shared_ptr<SharedAnswer> asked);

  asio::io_context& loop_;
  Worker worker_;
  std::chrono::seconds patience_{};
  std::size_t under_way_ = 0;
  std::uint64_t number_ = 0;
  std::map<std::string, std::shared_ptr<SharedAnswer>> asked_;  // of that number, by target
};

/// Looks names up. The system's own call can hang for any time and cannot be ended. So each name
/// has a thread while it is looked up, and no caller waits longer than it said.
class Resolver {
 public:
  using Endpoints = std::vector<Protocol::endpoint>;
  using Time = std::chrono::steady_clock::time_point;

  explicit Resolver(asio::io_context& loop);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  /// The addresses of `host`; never empty. If the name service does not answer in time: the last
  /// known addresses. Error: `failure`.
  Coroutine<Result<Endpoints>> find(std::string host, std::uint16_t port, Time until);

 private:
  struct Name {
    Endpoints endpoints;
    std::string error;
    Time looked_up{};
    bool under_way = false;
    std::vector<std::shared_ptr<Timer>> waiting;
  };
  /// Outlives this object if a thread does not return.
  struct Mailbox;

  void look_up(const std::string& host);
  void take(const std::string& host, Endpoints endpoints, std::string error);

  asio::io_context& loop_;
  std::shared_ptr<Mailbox> mailbox_;
  std::map<std::string, Name> names_;
  std::deque<std::string> waiting_;
  std::size_t under_way_ = 0;
};

/// Whose limits apply to a user: the name and the groups, as the name service says them. The
/// service may never answer, so each question has a thread of its own, one for each user at a time.
class Askers {
 public:
  /// What the service has said in the last minute. nullopt: it has not answered yet, or could not
  /// be asked.
  std::optional<Asker> find(std::uint32_t uid);

 private:
  struct Question {
    std::chrono::steady_clock::time_point asked_at{};
    sys::DetachedAnswer<std::optional<Asker>> coming{};
    std::optional<Asker> answer{};
  };

  std::map<std::uint32_t, Question> questions_;
};

}  // namespace berth::net
