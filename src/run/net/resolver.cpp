#include "berth/net/resolver.h"

#include <netdb.h>

#include <algorithm>
#include <mutex>
#include <system_error>

#include "berth/base/fail.h"
#include "berth/sys/detached_thread.h"

namespace berth::net {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostThreads = 64;
/// Names seldom move; a connection that is kept does not ask at all.
constexpr auto kFresh = 30s;
/// How long an answer is waited for where an older one is known.
constexpr auto kHesitation = 500ms;

struct Found {
  Resolver::Endpoints endpoints;
  std::string error;
};

/// May block for as long as the name service likes.
Found ask_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, [](addrinfo* each) {
    if (each != nullptr) ::freeaddrinfo(each);
  });
  Found found;
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
    Found found = ask_system(host);
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

Task<Result<Resolver::Endpoints>> Resolver::find(std::string host, std::uint16_t port, Time until) {
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

}  // namespace berth::net
