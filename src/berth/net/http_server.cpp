// The only file that sees the HTTP library; listener.cpp sees its sockets. A connection is a coroutine on the
// one event loop; what it may take of time and memory is bounded here. What is handed to a coroutine is a
// variable, never a temporary: GCC 12 may destroy a temporary of a co_await twice.
#include "berth/net/http_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "berth/net/gzip.h"
#include "berth/net/listeners.h"
#include "berth/net/wire.h"

namespace berth::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::chrono_literals;

using PlainStream = beast::basic_stream<Protocol, Executor>;
using SecuredStream = asio::ssl::stream<PlainStream>;
using Task = asio::awaitable<void, Executor>;

constexpr std::size_t kMostConnections = 4000;
constexpr std::size_t kMostLocalConnections = 500;  // through the Unix socket, which no network can fill
constexpr std::size_t kReadBytes = 4096;
constexpr auto kIdle = 75s;  // between two requests: longer than Prometheus' usual interval
constexpr auto kSeeingOff = 2s;
constexpr std::size_t kMostErrands = 64;       // at a time: each may read much
constexpr std::size_t kMostFramesAtOnce = 16;  // what is newer meanwhile takes the place of the rest
constexpr auto kDraining = 2000ms;             // for answers under way when the server is told to end
constexpr auto kDrainingStep = 10ms;

/// As many descriptors as the system lets this process have. Returns how many that is.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostConnections;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * kMostConnections);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

class Count {
 public:
  explicit Count(std::size_t& counter) : counter_(counter) { ++counter_; }
  ~Count() { --counter_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  std::size_t& counter_;
};

}  // namespace

class HttpServer::Body {
 public:
  explicit Body(Site site) : site_(std::move(site)) {
    // The rest is for the looks at the machine, which clients must not be able to stop.
    const std::size_t descriptors = raise_descriptor_limit();
    network_.most = std::min(kMostConnections, descriptors / 8 * 5);
    local_.most = std::min(kMostLocalConnections, descriptors / 8);
  }

  Result<void> apply(const Settings& settings) {
    std::string token;
    if (!settings.token_file.empty()) {
      BERTH_LET(auto read, read_token(settings.token_file));
      token = std::move(read);
    }
    TlsContext tls;
    if (!settings.tls_certificate.empty()) {
      BERTH_LET(auto context, tls_context(settings));
      tls = std::move(context);
    }
    BERTH_DO(listeners_.listen(settings));
    const bool checks_host = token.empty() && settings.tls_clients.empty() && !settings.insecure;
    if (tls || tls_ || token != network_.door.token || checks_host != network_.door.checks_host)
      show_out_the_network();
    network_.door = {.token = token, .checks_host = checks_host};
    tls_ = std::move(tls);
    patience_ = std::chrono::seconds(settings.patience_s);
    return {};
  }

  std::vector<std::string> addresses() const { return listeners_.names(tls_ != nullptr); }

  asio::io_context& loop() { return io_; }

  void publish(std::shared_ptr<const Published> published) {
    asio::post(io_, [this, published = std::move(published)]() mutable {
      published_ = std::move(published);
      packer_.forget_what_is_gone();
      bell_.expires_after(silence());  // wakes all who wait for it
    });
  }

  void run(const std::function<void()>& reload) {
    asio::co_spawn(io_, obey_signals(reload), asio::detached);
    io_.run();
    listeners_.close();
  }

 private:
  /// Clients of the network, or of the Unix socket.
  struct Side {
    Door door{};
    std::size_t most = 0;
    std::size_t connections = 0;
    std::uint64_t admission = 0;  // rises when who may ask has changed
  };

  struct Visit {
    const Side& side;
    std::uint64_t admission;  // under which the client was let in
    bool is_admitted() const { return admission == side.admission; }
  };

  /// Of an event stream; then a comment shows that it lives.
  std::chrono::seconds silence() const { return patience_ + patience_ / 2; }

  /// Whoever was let in under other rules must knock again: streams end, kept connections are closed.
  void show_out_the_network() {
    ++network_.admission;
    bell_.cancel();
  }

  Task obey_signals(std::function<void()> reload) {
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

  Task accept_at(std::shared_ptr<Acceptor> acceptor, Side& side) {
    while (true) {
      auto [error, socket] = co_await acceptor->async_accept(kAwait);
      if (!acceptor->is_open()) co_return;
      if (error) {  // no descriptors left: clients wait in the kernel's queue until some are
        Timer pause(io_, 100ms);
        co_await pause.async_wait(kAwait);
      } else if (side.connections < side.most) {
        asio::co_spawn(io_, attend(PlainStream(std::move(socket)), side), asio::detached);
      }
    }
  }

  Task attend(PlainStream stream, Side& side) {
    const Count connection(side.connections);
    const Visit visit{side, side.admission};
    if (&side == &local_ || !tls_) {
      co_await converse(stream, visit);
      co_return;
    }
    const TlsContext context = tls_;  // a reload may put another in its place
    SecuredStream secure(std::move(stream), *context);
    beast::get_lowest_layer(secure).expires_after(patience_);
    const auto [error] = co_await secure.async_handshake(asio::ssl::stream_base::server, kAwait);
    if (!error) co_await converse(secure, visit);
  }

  template <class Stream>
  Task converse(Stream& stream, const Visit& visit) {
    beast::flat_buffer input(kMostHeaderBytes);
    for (bool keep_alive = true; keep_alive && !ending_;) {
      if (input.size() == 0 && !co_await read_more(stream, input)) co_return;
      http::request_parser<http::empty_body> parser;
      parser.header_limit(kMostHeaderBytes);
      beast::get_lowest_layer(stream).expires_after(patience_);
      const auto [error, size] = co_await http::async_read_header(stream, input, parser, kAwait);
      if (!visit.is_admitted()) co_return;
      const Count under_way(answering_);
      if (error) {
        const auto refusal = refusal_of(error);
        if (refusal && co_await send(stream, *refusal, {.keep_alive = false}))
          co_await see_off(stream, input);
        co_return;
      }
      // A body is never read: what it says cannot matter.
      const bool has_body = parser.chunked() || parser.content_length_remaining().value_or(0) > 0;
      keep_alive = parser.get().keep_alive() && !has_body && !ending_;
      const Header& header = parser.get();
      const Manner manner{.with_text = header.method() != http::verb::head,
                          .packed = takes_gzip(header),
                          .keep_alive = keep_alive};
      Answer answer = serve::answer(request_of(header), visit.side.door, site_, *published_);
      if (const auto* subscription = std::get_if<Subscription>(&answer)) {
        co_await send_events(stream, *subscription, manner.with_text, visit);
        co_return;
      }
      if (const auto* errand = std::get_if<Errand>(&answer)) answer = co_await run_errand(*errand);
      if (!co_await send(stream, std::get<Page>(answer), manner)) co_return;
      if (has_body) co_await see_off(stream, input);
    }
  }

  template <class Stream>
  asio::awaitable<bool, Executor> read_more(Stream& stream, beast::flat_buffer& input) {
    beast::get_lowest_layer(stream).expires_after(kIdle);
    const auto [error, size] = co_await stream.async_read_some(input.prepare(kReadBytes), kAwait);
    input.commit(size);
    co_return !error;
  }

  /// Reads for a while what the client still sends: closing before would reset the connection, and the answer
  /// might be lost with it.
  template <class Stream>
  Task see_off(Stream& stream, beast::flat_buffer& input) {
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

  /// How one client takes its answer.
  struct Manner {
    bool with_text = true;
    bool packed = false;
    bool keep_alive = true;
  };

  template <class Stream>
  asio::awaitable<bool, Executor> send(Stream& stream, const Page& page, Manner manner) {
    SharedText text = page.text;
    Sending sending{.length = text->size(), .keep_alive = manner.keep_alive};
    if (const SharedText packed = manner.packed ? packer_.packed(text) : nullptr) {
      text = packed;
      sending.length = text->size();
      sending.is_packed = true;
    }
    const std::string head = head_of(page, sending);
    const auto body = manner.with_text ? asio::buffer(*text) : asio::const_buffer();
    const std::array<asio::const_buffer, 2> parts{asio::buffer(head), body};
    co_return co_await write(stream, parts);
  }

  /// The reply may come in another thread, before or after, or never.
  asio::awaitable<Page, Executor> run_errand(const Errand& errand) {
    if (errands_ >= kMostErrands) co_return refusal(503, "too many ask at once; ask again in a moment");
    const Count under_way(errands_);
    struct Wait {
      explicit Wait(asio::io_context& io) : timer(io) {}
      Timer timer;
      std::optional<Page> page;
    };
    const auto wait = std::make_shared<Wait>(io_);
    wait->timer.expires_after(patience_);
    (*errand.service)(errand.call, [this, wait](Page page) {
      asio::post(io_, [wait, page = std::move(page)]() mutable {
        wait->page = std::move(page);
        wait->timer.cancel();
      });
    });
    co_await wait->timer.async_wait(kAwait);
    if (wait->page) co_return std::move(*wait->page);
    co_return refusal(504, "the answer took too long; ask for less, or later");
  }

  template <class Stream, class Buffers>
  asio::awaitable<bool, Executor> write(Stream& stream, const Buffers& buffers) {
    beast::get_lowest_layer(stream).expires_after(patience_);
    const auto [error, size] = co_await asio::async_write(stream, buffers, kAwait);
    co_return !error;
  }

  /// Each client gets the newest when it has taken what came before: a slow one misses some, and holds up
  /// nobody.
  template <class Stream>
  Task send_events(Stream& stream, const Subscription& subscription, bool with_text, const Visit& visit) {
    const Page page{200, "text/event-stream", nullptr};
    const std::string head = head_of(page, {.length = std::nullopt, .keep_alive = false});
    const asio::const_buffer start = asio::buffer(head);
    if (!co_await write(stream, start) || !with_text) co_return;
    std::uint64_t sent = subscription.after <= published_->number ? subscription.after : 0;
    bool silent = false;
    while (!ending_ && visit.is_admitted()) {
      std::vector<SharedText> texts = frames_after(subscription.path, sent);
      static const auto kComment = std::make_shared<const std::string>(":\n\n");
      if (texts.empty() && silent) texts.push_back(kComment);
      if (!texts.empty()) {
        std::vector<asio::const_buffer> buffers;
        for (const SharedText& text : texts) buffers.push_back(asio::buffer(*text));
        if (!co_await write(stream, buffers)) co_return;
        silent = false;
        continue;
      }
      beast::get_lowest_layer(stream).expires_never();
      if (bell_.expiry() <= std::chrono::steady_clock::now()) bell_.expires_after(silence());
      const auto [rung] = co_await bell_.async_wait(kAwait);
      silent = !rung;
    }
  }

  /// The next frames of a stream; `sent` becomes the number of the last of them.
  std::vector<SharedText> frames_after(const std::string& path, std::uint64_t& sent) const {
    std::vector<SharedText> texts;
    const auto stream = published_->streams.find(path);
    if (stream == published_->streams.end()) return texts;
    const auto& frames = stream->second;
    auto next = std::ranges::upper_bound(frames, sent, {}, &Frame::number);
    for (; next != frames.end() && texts.size() < kMostFramesAtOnce; ++next) {
      texts.push_back(next->text);
      sent = next->number;
    }
    return texts;
  }

  Site site_;
  asio::io_context io_{1};
  asio::basic_signal_set<Executor> signals_{io_, SIGTERM, SIGINT, SIGHUP};
  Timer bell_{io_};
  Listeners listeners_{io_, [this](const Listener& each) {
                         asio::co_spawn(io_, accept_at(each.acceptor, each.network ? network_ : local_),
                                        asio::detached);
                       }};
  Side network_;
  Side local_{.door = {.token = "", .checks_host = false}};
  TlsContext tls_;
  std::chrono::seconds patience_{};
  std::shared_ptr<const Published> published_ = std::make_shared<const Published>();
  std::size_t answering_ = 0;
  std::size_t errands_ = 0;
  Packer packer_;
  bool ending_ = false;
};

HttpServer::HttpServer(Site site) : body_(std::make_unique<Body>(std::move(site))) {}
HttpServer::~HttpServer() = default;

Result<void> HttpServer::apply(const Settings& settings) {
  return body_->apply(settings);
}

std::vector<std::string> HttpServer::addresses() const {
  return body_->addresses();
}

asio::io_context& HttpServer::loop() {
  return body_->loop();
}

void HttpServer::publish(std::shared_ptr<const Published> published) {
  body_->publish(std::move(published));
}

void HttpServer::run(const std::function<void()>& reload) {
  body_->run(reload);
}

}  // namespace berth::serve
