#include "berth/net/background_work.h"

#include <netdb.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <system_error>

#include "berth/base/text.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
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

Coroutine<http::Page> BackgroundAnswers::run(const http::ServiceCall& service_call) {
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

Coroutine<http::Page> BackgroundAnswers::answer(const http::Question& question, std::string target,
                                                std::uint64_t number) {
  if (number != number_) asked_.clear();
  number_ = number;
  if (const auto known = asked_.find(target); known != asked_.end()) {
    std::shared_ptr<SharedAnswer> asked = known->second;
    const http::Page page = co_await wait_for(std::move(asked));
    co_return unless_unchanged(page, question.if_none_match);
  }
  if (under_way_ >= kMostErrands) co_return too_many();
  const Count under_way(under_way_);
  const auto asked = std::make_shared<SharedAnswer>();
  if (asked_.size() < kMostKept) asked_.emplace(std::move(target), asked);
  const http::Page page = co_await work_out(question);
  asked->page = page;
  for (const auto& each : asked->waiting) each->cancel();
  co_return unless_unchanged(page, question.if_none_match);
}

Coroutine<http::Page> BackgroundAnswers::work_out(const http::Question& question) {
  auto work = [ask = question.ask, parameters = question.parameters] { return ask(parameters); };
  const Result<http::Page> made = co_await worker_.run(std::move(work));
  if (made) co_return *made;
  co_return http::refusal(500, made.error().message);
}

Coroutine<http::Page> BackgroundAnswers::wait_for(std::shared_ptr<SharedAnswer> asked) {
  if (!asked->page) {
    const auto timer = std::make_shared<Timer>(loop_);
    timer->expires_after(patience_);
    asked->waiting.push_back(timer);
    co_await timer->async_wait(kAwait);
  }
  if (asked->page) co_return *asked->page;
  co_return too_late();
}

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostThreads = 64;
/// Names seldom move; a connection that is kept does not ask at all.
constexpr auto kFresh = 30s;
/// How long an answer is waited for where an older one is known.
constexpr auto kHesitation = 500ms;

struct ResolvedName {
  Resolver::Endpoints endpoints;
  std::string error;
};

/// May block for as long as the name service likes.
ResolvedName ask_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, [](addrinfo* each) {
    if (each != nullptr) ::freeaddrinfo(each);
  });
  ResolvedName found;
  if (failed != 0) {
    found.error = failed == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(failed);
    return found;
  }
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next)
    found.endpoints.emplace_back(each->ai_addr, each->ai_addrlen);
  return found;
}

Resolver::Endpoints with_port(Resolver::Endpoints endpoints, std::uint16_t port) {
  for (Protocol::endpoint& each : endpoints) {
    auto* in = reinterpret_cast<sockaddr_in*>(each.data());  // it is where IPv6 has it too
    in->sin_port = htons(port);
  }
  return endpoints;
}

}  // namespace

struct Resolver::Mailbox {
  std::mutex mutex;
  Resolver* resolver = nullptr;
};

Resolver::Resolver(asio::io_context& loop) : loop_(loop), mailbox_(std::make_shared<Mailbox>()) {
  mailbox_->resolver = this;
}

Resolver::~Resolver() {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->resolver = nullptr;
}

void Resolver::look_up(const std::string& host) {
  if (under_way_ >= kMostThreads) {
    waiting_.push_back(host);
    return;
  }
  ++under_way_;
  const auto ask = [host, mailbox = mailbox_] {
    ResolvedName found = ask_system(host);
    const std::lock_guard lock(mailbox->mutex);
    if (mailbox->resolver == nullptr) return;
    asio::post(mailbox->resolver->loop_, [host, mailbox, found = std::move(found)]() mutable {
      // The loop runs no more when the resolver is gone.
      if (mailbox->resolver != nullptr)
        mailbox->resolver->take(host, std::move(found.endpoints), std::move(found.error));
    });
  };
  try {
    sys::begin_detached(ask);
  } catch (const std::system_error& error) {
    asio::post(loop_, [this, host, text = std::string(error.what())] { take(host, {}, text); });
  }
}

void Resolver::take(const std::string& host, Endpoints endpoints, std::string error) {
  --under_way_;
  Name& name = names_[host];
  name.under_way = false;
  name.looked_up = std::chrono::steady_clock::now();
  name.error = std::move(error);
  if (!endpoints.empty()) name.endpoints = std::move(endpoints);
  for (const auto& each : name.waiting) each->cancel();
  if (waiting_.empty()) return;
  const std::string next = std::move(waiting_.front());
  waiting_.pop_front();
  look_up(next);
}

Coroutine<Result<Resolver::Endpoints>> Resolver::find(std::string host, std::uint16_t port, Time until) {
  boost::system::error_code no_address;
  const auto address = asio::ip::make_address(host, no_address);
  if (!no_address) co_return Endpoints{asio::ip::tcp::endpoint(address, port)};

  Name& name = names_[host];  // stays where it is
  const Time now = std::chrono::steady_clock::now();
  const bool known = !name.endpoints.empty();
  if (known && name.error.empty() && now < name.looked_up + kFresh) co_return with_port(name.endpoints, port);
  if (!name.under_way) {
    name.under_way = true;
    look_up(host);
  }
  const auto patience = std::make_shared<Timer>(loop_, known ? std::min(until, now + kHesitation) : until);
  name.waiting.push_back(patience);
  co_await patience->async_wait(kAwait);
  std::erase(name.waiting, patience);
  if (!name.endpoints.empty()) co_return with_port(name.endpoints, port);
  if (name.under_way)
    co_return fail(ErrorCode::failure,
                   "the name service does not say in time where '{}' is; see /etc/resolv.conf, or "
                   "give an address",
                   host);
  co_return fail(ErrorCode::failure, "'{}' cannot be found: {}", host, name.error);
}

namespace {

using namespace std::chrono_literals;

/// A user who is put into another group has its limit then.
constexpr auto kNamesAreKept = 60s;

}  // namespace

std::optional<Asker> Askers::find(std::uint32_t uid) {
  Question& question = questions_[uid];
  if (question.coming.is_awaited()) question.answer = question.coming.within(0ms);
  const auto now = std::chrono::steady_clock::now();
  const bool is_known = question.answer && now - question.asked_at < kNamesAreKept;
  if (is_known || question.coming.is_awaited()) return question.answer;
  question = {.asked_at = now};
  try {
    question.coming = sys::DetachedAnswer<std::optional<Asker>>([uid]() -> std::optional<Asker> {
      return Asker{uid, sys::user_name(uid), sys::group_names_of(uid)};
    });
  } catch (const std::bad_alloc&) {
    // No memory for a thread: nobody has asked. The next call does.
  }
  return std::nullopt;
}

}  // namespace berth::net
