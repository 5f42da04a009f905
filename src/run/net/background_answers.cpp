// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/net/background_answers.h"

#include "berth/net/count.h"

namespace berth::net {
namespace {

constexpr std::size_t kMostErrands = 64;  // at a time: each may read much
constexpr std::size_t kMostKept = 32;     // answers to questions

http::Page too_many() {
  return http::refusal(503, "too many ask at once; ask again in a moment");
}

http::Page too_late() {
  return http::refusal(504, "the answer took too long; ask for less, or later");
}

}  // namespace

Task<http::Page> BackgroundAnswers::run(const http::ServiceCall& service_call) {
  if (under_way_ >= kMostErrands) co_return too_many();
  const Count under_way(under_way_);
  struct Wait {
    explicit Wait(asio::io_context& loop) : timer(loop) {}
    Timer timer;
    std::optional<http::Page> page;
  };
  const auto wait = std::make_shared<Wait>(loop_);
  wait->timer.expires_after(patience_);
  (*service_call.service)(service_call.call, [this, wait](http::Page page) {
    asio::post(loop_, [wait, page = std::move(page)]() mutable {
      wait->page = std::move(page);
      wait->timer.cancel();
    });
  });
  co_await wait->timer.async_wait(kAwait);
  if (wait->page) co_return std::move(*wait->page);
  co_return too_late();
}

Task<http::Page> BackgroundAnswers::answer(const http::Question& question, std::string target,
                                           std::uint64_t number) {
  if (number != number_) asked_.clear();
  number_ = number;
  if (const auto known = asked_.find(target); known != asked_.end()) {
    std::shared_ptr<Asked> asked = known->second;
    const http::Page page = co_await wait_for(std::move(asked));
    co_return unless_unchanged(page, question.if_none_match);
  }
  if (under_way_ >= kMostErrands) co_return too_many();
  const Count under_way(under_way_);
  const auto asked = std::make_shared<Asked>();
  if (asked_.size() < kMostKept) asked_.emplace(std::move(target), asked);
  const http::Page page = co_await work_out(question);
  asked->page = page;
  for (const auto& each : asked->waiting) each->cancel();
  co_return unless_unchanged(page, question.if_none_match);
}

Task<http::Page> BackgroundAnswers::work_out(const http::Question& question) {
  auto work = [ask = question.ask, parameters = question.parameters] { return ask(parameters); };
  const Result<http::Page> made = co_await worker_.run(std::move(work));
  if (made) co_return *made;
  co_return http::refusal(500, made.error().message);
}

Task<http::Page> BackgroundAnswers::wait_for(std::shared_ptr<Asked> asked) {
  if (!asked->page) {
    const auto timer = std::make_shared<Timer>(loop_);
    timer->expires_after(patience_);
    asked->waiting.push_back(timer);
    co_await timer->async_wait(kAwait);
  }
  if (asked->page) co_return *asked->page;
  co_return too_late();
}

}  // namespace berth::net
