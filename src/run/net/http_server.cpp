// The only file that sees the HTTP library; listener.cpp sees its sockets. A connection is a
// coroutine on the one event loop; what it may take of time and memory is bounded here. What is
// handed to a coroutine is a variable, never a temporary: GCC 12 may destroy a temporary of a
// co_await twice.
#include "berth/net/http_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "berth/net/background_work.h"
#include "berth/net/event_stream.h"
#include "berth/net/http_head.h"
#include "berth/net/listener.h"
#include "berth/sys/file.h"
#include "berth/sys/socket.h"
#include "berth/view/server_metrics.h"

namespace berth::net {
namespace {

namespace beast = boost::beast;
using namespace std::chrono_literals;

using SecuredStream = asio::ssl::stream<PlainStream&>;
constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kMostAtOnce = 16U << 10U;
constexpr auto kIdle = 75s;  // between two requests: longer than Prometheus' usual interval
constexpr auto kBetweenWarnings = 10min;
constexpr auto kSeeingOff = 2s;
constexpr auto kDraining = 2000ms;  // for answers under way when the server is told to end
constexpr auto kDrainingStep = 10ms;

}  // namespace

class HttpServer::Body {
 public:
  explicit Body(http::Site site) : site_(std::move(site)) {
    allow_connections(network_.connections, local_.connections);
  }

  Result<void> apply(const http::Settings& settings) {
    std::string token;
    if (!settings.token_file.empty()) {
      BERTH_LET(auto read, http::read_token(settings.token_file));
      token = std::move(read);
    }
    TlsContext tls;
    if (!settings.tls_certificate.empty()) {
      BERTH_LET(auto context, tls_context(settings));
      tls = std::move(context);
    }
    BERTH_DO(listeners_.listen(settings));
    http::AccessRule access{.token = token, .checks_host = checks_host(settings), .hosts = settings.hosts};
    BERTH_DO(guard_own_jobs(settings.own_jobs, token));
    if (tls || tls_ || access != network_.access) disconnect(network_);
    network_.access = std::move(access);
    tls_ = std::move(tls);
    patience_ = std::chrono::seconds(settings.patience_s);
    background_.set_patience(patience_);
    return {};
  }

  std::vector<std::string> addresses() const { return listeners_.names(tls_ != nullptr); }

  asio::io_context& loop() { return io_; }

  void publish(std::shared_ptr<const http::Published> published) {
    delta_thread_.publish(std::move(published));
  }

  void run(const std::function<void()>& reload) {
    asio::co_spawn(io_, obey_signals(reload), asio::detached);
    while (!io_.stopped()) run_for_a_while();
    listeners_.close();
  }

 private:
  struct Visit {
    const ListenerGroup& group;
    const ConnectionSlot& slot;
    std::uint64_t admission;  // under which the client was let in
    bool is_stranger;         // another user of this machine, at the Unix socket
    bool is_admitted() const { return admission == group.admission; }
  };

  void show(std::shared_ptr<const http::Published> published, http::ByPath<DeltaChunk> deltas) {
    asio::post(io_, [this, published = std::move(published), deltas = std::move(deltas)]() mutable {
      delta_thread_.drop(std::exchange(published_, std::move(published)));
      deltas_ = std::move(deltas);
      packer_.forget_what_is_gone();
      bell_.expires_after(silence());  // wakes all who wait for it
    });
  }

  /// Of an event stream; then a comment shows that it lives.
  std::chrono::seconds silence() const { return patience_ + patience_ / 2; }

  /// Clients that were accepted under other rules must authenticate again: streams end, kept
  /// connections are closed.
  void disconnect(ListenerGroup& group) {
    ++group.admission;
    bell_.cancel();
  }

  /// Every user can connect to the Unix socket. Other users than the owner of the jobs need the
  /// token; if there is none, they need a word that nobody knows.
  Result<void> guard_own_jobs(bool own_jobs, const std::string& token) {
    std::optional<http::AccessRule> strangers;
    if (own_jobs) {
      BERTH_LET(auto unknown, sys::random_word());
      strangers = http::AccessRule{.token = token.empty() ? std::move(unknown) : token, .checks_host = false};
    }
    if (strangers != strangers_) disconnect(local_);
    strangers_ = std::move(strangers);
    return {};
  }

  const http::AccessRule& access_of(const Visit& visit) const {
    return strangers_ && visit.is_stranger ? *strangers_ : visit.group.access;
  }

  static bool is_stranger(PlainStream& stream) {
    const auto user = sys::peer_user(stream.socket().native_handle());
    return user != ::geteuid() && user != 0U;
  }

  Coroutine<> obey_signals(std::function<void()> reload) {
    while (true) {
      const auto [error, signal] = co_await signals_.async_wait(kAwait);
      if (signal != SIGHUP) break;
      reload();
    }
    ending_ = true;
    listeners_.close();
    bell_.cancel();
    Timer pause(io_);
    for (auto waited = 0ms; answering_ > 0 && waited < kDraining; waited += kDrainingStep) {
      pause.expires_after(kDrainingStep);
      co_await pause.async_wait(kAwait);
    }
    io_.stop();
  }

  Coroutine<> accept_at(std::shared_ptr<Acceptor> acceptor, ListenerGroup& group) {
    while (true) {
      auto [error, socket] = co_await acceptor->async_accept(kAwait);
      if (!acceptor->is_open()) co_return;
      if (error) {  // no descriptors left: clients wait in the kernel's queue until some are
        Timer pause(io_, 100ms);
        co_await pause.async_wait(kAwait);
      } else {
        serve_client(PlainStream(std::move(socket)), group);
      }
    }
  }

  /// If there is no room, the client that has been idle for the longest time is disconnected.
  void serve_client(PlainStream stream, ListenerGroup& group) {
    boost::system::error_code error;  // gone already: its address does not matter
    const auto from = stream.socket().remote_endpoint(error);
    const http::Connections::Admission admission =
        group.connections.admit(error ? std::string() : address_key(from));
    if (admission.evicted || admission.id == 0) warn_of_crowd(group);
    if (admission.evicted) group.streams.at(*admission.evicted)->close();
    counts_.evicted += admission.evicted ? 1 : 0;
    counts_.refused += admission.id == 0 ? 1 : 0;
    if (admission.id == 0) return;
    asio::co_spawn(io_, attend(std::move(stream), group, admission.id),
                   [this](const std::exception_ptr& thrown) { log_thrown(thrown); });
  }

  void warn_of_crowd(ListenerGroup& group) {
    const auto now = std::chrono::steady_clock::now();
    if (group.warned != decltype(now)() && now - group.warned < kBetweenWarnings) return;
    group.warned = now;
    site_.log(fmt::format("{} connections are open at {}; those that ask for nothing make room",
                          group.connections.count(), &group == &local_ ? "the Unix socket" : "the network"));
  }

  /// If one client or agent causes a fault, all others are served as before.
  void run_for_a_while() {
    try {
      io_.run();
    } catch (const std::exception& error) {
      site_.log(fmt::format("went on after a fault: {}", error.what()));
    }
  }

  void log_thrown(const std::exception_ptr& thrown) const {
    if (!thrown) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      site_.log(fmt::format("a connection was closed after a fault: {}", error.what()));
    }
  }

  Coroutine<> attend(PlainStream stream, ListenerGroup& group, http::Connections::Id id) {
    const ConnectionSlot slot(group, id, stream);
    const Visit visit{group, slot, group.admission, &group == &local_ && is_stranger(stream)};
    if (&group == &local_ || !tls_) {
      co_await serve_requests(stream, visit);
      co_return;
    }
    const TlsContext context = tls_;  // a reload may put another in its place
    SecuredStream secure(stream, *context);
    beast::get_lowest_layer(secure).expires_after(patience_);
    const auto [error] = co_await secure.async_handshake(asio::ssl::stream_base::server, kAwait);
    if (!error) co_await serve_requests(secure, visit);
  }

  template <class Stream>
  Coroutine<> serve_requests(Stream& stream, const Visit& visit) {
    beast::flat_buffer input(kMostHeaderBytes);
    auto patience = patience_;  // until something was asked
    for (bool keep_alive = true; keep_alive && !ending_; patience = kIdle) {
      visit.slot.waits();
      if (input.size() == 0 && !co_await read_more(stream, input, patience)) co_return;
      beast::http::request_parser<beast::http::empty_body> parser;
      parser.header_limit(kMostHeaderBytes);
      beast::get_lowest_layer(stream).expires_after(patience_);
      const auto [error, size] = co_await beast::http::async_read_header(stream, input, parser, kAwait);
      if (!visit.is_admitted()) co_return;
      visit.slot.is_served();
      const Count under_way(answering_);
      if (error) {
        const auto refusal = refusal_of(error);
        if (refusal && co_await send(stream, *refusal, {.keep_alive = false}))
          co_await drain_and_close(stream, input);
        co_return;
      }
      const Header& header = parser.get();
      // The server never reads a body. So it serves no further request on the connection after a
      // body, or after a request that is ambiguous.
      const bool is_odd = is_ambiguous(header);
      const bool has_body = is_odd || parser.chunked() || parser.content_length_remaining().value_or(0) > 0;
      keep_alive = parser.get().keep_alive() && !has_body && !ending_;
      const Manner manner{.with_text = header.method() != beast::http::verb::head,
                          .packed = takes_gzip(header),
                          .keep_alive = keep_alive};
      const http::HttpRequest request = request_of(header);
      http::Answer answer = is_odd ? http::refusal(400, kAmbiguous)
                                   : http::answer(request, access_of(visit), site_, *published_);
      if (const auto* subscription = std::get_if<http::Subscription>(&answer)) {
        co_await send_events(stream, *subscription, manner, visit);
        co_return;
      }
      if (const auto* service_call = std::get_if<http::ServiceCall>(&answer)) {
        http::Page made = co_await background_.run(*service_call);
        answer = std::move(made);
      } else if (const auto* question = std::get_if<http::Question>(&answer)) {
        std::string target(request.target);
        http::Page made = co_await background_.answer(*question, std::move(target), published_->number);
        answer = std::move(made);
      }
      http::Page& page = std::get<http::Page>(answer);
      ++counts_.answers[page.status];
      if (request.target == "/metrics" && page.status == 200) add_own_metrics(page);
      if (!co_await send(stream, page, manner)) co_return;
      if (has_body) co_await drain_and_close(stream, input);
    }
  }

  template <class Stream>
  Coroutine<bool> read_more(Stream& stream, beast::flat_buffer& input, std::chrono::seconds patience) {
    beast::get_lowest_layer(stream).expires_after(patience);
    const auto [error, size] = co_await stream.async_read_some(input.prepare(kReadBytes), kAwait);
    input.commit(size);
    co_return !error;
  }

  /// Reads for a while what the client still sends: closing before would reset the connection, and
  /// the answer might be lost with it.
  template <class Stream>
  Coroutine<> drain_and_close(Stream& stream, beast::flat_buffer& input) {
    PlainStream& plain = beast::get_lowest_layer(stream);
    boost::system::error_code error;  // also when the client is gone already: then nothing is read
    (void)plain.socket().shutdown(asio::socket_base::shutdown_send, error);
    plain.expires_after(kSeeingOff);
    while (!error) {
      input.clear();
      const auto [failed, size] = co_await plain.async_read_some(input.prepare(kReadBytes), kAwait);
      error = failed;
    }
  }

  void add_own_metrics(http::Page& page) {
    counts_.network = network_.connections.count();
    counts_.local = local_.connections.count();
    page = http::make_page(page.status, page.type, *page.text + view::server_metrics(counts_));
    page.tag.clear();
  }

  /// How one client takes its answer.
  struct Manner {
    bool with_text = true;
    bool packed = false;
    bool keep_alive = true;
  };

  template <class Stream>
  Coroutine<bool> send(Stream& stream, const http::Page& page, Manner manner) {
    const auto packed = manner.packed ? packer_.packed(page) : nullptr;
    std::vector<asio::const_buffer> buffers(1);
    if (packed) {
      buffers.push_back(asio::buffer(GzipFrame::start()));
      for (const net::SharedPacked& each : packed->parts) buffers.push_back(asio::buffer(each->bytes));
      buffers.push_back(asio::buffer(packed->end));
    } else if (page.parts) {
      for (const http::Part& each : *page.parts) buffers.push_back(asio::buffer(*each.text));
    } else {
      buffers.push_back(asio::buffer(*page.text));
    }
    const std::string head = head_of(page, {.length = asio::buffer_size(buffers),
                                            .keep_alive = manner.keep_alive,
                                            .is_packed = packed != nullptr});
    buffers.front() = asio::buffer(head);
    if (!manner.with_text) buffers.resize(1);
    co_return co_await write(stream, buffers);
  }

  template <class Stream, class Buffers>
  Coroutine<bool> write(Stream& stream, const Buffers& buffers) {
    beast::get_lowest_layer(stream).expires_after(patience_);
    // A little at a time, so that whoever asks for little need not wait for many who take much.
    const auto at_most = [](const boost::system::error_code& failed, std::size_t) {
      return failed ? 0 : kMostAtOnce;
    };
    const auto [error, size] = co_await asio::async_write(stream, buffers, at_most, kAwait);
    co_return !error;
  }

  /// Each client gets the newest when it has taken what came before: a slow one misses some, and
  /// holds up nobody.
  template <class Stream>
  Coroutine<> send_events(Stream& stream, const http::Subscription& subscription, Manner manner,
                          const Visit& visit) {
    const http::Page page{200, "text/event-stream", nullptr};
    const std::string head =
        head_of(page, {.length = std::nullopt, .keep_alive = false, .is_packed = manner.packed});
    EventText text(manner.packed);
    std::vector<asio::const_buffer> buffers = text.start(head);
    if (!co_await write(stream, buffers) || !manner.with_text) co_return;
    const Readership::Reader reader(readership_, subscription.path);
    StreamCursor cursor(subscription.path, subscription.after <= published_->number ? subscription.after : 0);
    bool silent = false;
    while (!ending_ && visit.is_admitted()) {
      if (const DeltaChunk* delta = manner.packed ? cursor.delta(deltas_) : nullptr) {
        buffers = text.following(*delta);
        if (!co_await write(stream, buffers)) co_return;
        silent = false;
        continue;
      }
      http::Parts parts = cursor.frames(*published_);
      static const http::Part kComment = http::make_part(":\n\n");
      if (parts.empty() && silent) {
        parts.push_back(kComment);
        cursor.is_interrupted();
      }
      if (!parts.empty()) {
        buffers = text.following(std::move(parts));
        if (!co_await write(stream, buffers)) co_return;
        silent = false;
        continue;
      }
      beast::get_lowest_layer(stream).expires_never();
      if (bell_.expiry() <= std::chrono::steady_clock::now()) bell_.expires_after(silence());
      const auto [rung] = co_await bell_.async_wait(kAwait);
      silent = !rung;
    }
    buffers = text.end();
    co_await write(stream, buffers);
  }

  http::Site site_;
  Readership readership_;  // the loop ends those who read
  asio::io_context io_{1};
  asio::basic_signal_set<Executor> signals_{io_, SIGTERM, SIGINT, SIGHUP};
  Timer bell_{io_};
  Listeners listeners_{io_, [this](const Listener& each) {
                         asio::co_spawn(io_, accept_at(each.acceptor, each.network ? network_ : local_),
                                        asio::detached);
                       }};
  ListenerGroup network_;
  ListenerGroup local_{.access = {.token = "", .checks_host = false}};
  std::optional<http::AccessRule> strangers_{};  // for other users at the Unix socket, if not as all
  TlsContext tls_;
  std::chrono::seconds patience_{};
  std::shared_ptr<const http::Published> published_ = std::make_shared<const http::Published>();
  http::ByPath<DeltaChunk> deltas_;  // of it
  std::size_t answering_ = 0;
  BackgroundAnswers background_{io_};
  view::ServerCounts counts_;
  Packer packer_;
  bool ending_ = false;
  DeltaThread delta_thread_{
      readership_, [this](auto published, auto deltas) { show(std::move(published), std::move(deltas)); }};
};

HttpServer::HttpServer(http::Site site) : body_(std::make_unique<Body>(std::move(site))) {}
HttpServer::~HttpServer() = default;

Result<void> HttpServer::apply(const http::Settings& settings) {
  return body_->apply(settings);
}

std::vector<std::string> HttpServer::addresses() const {
  return body_->addresses();
}

asio::io_context& HttpServer::loop() {
  return body_->loop();
}

void HttpServer::publish(std::shared_ptr<const http::Published> published) {
  body_->publish(std::move(published));
}

void HttpServer::run(const std::function<void()>& reload) {
  body_->run(reload);
}

}  // namespace berth::net
