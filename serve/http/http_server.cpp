// The only file that sees the HTTP library; listener.cpp sees its sockets. A connection is a coroutine on the
// one event loop; what it may take of time and memory is bounded here. What is handed to a coroutine is a
// variable, never a temporary: GCC 12 may destroy a temporary of a co_await twice.
#include "berth/serve/http/http_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>

#include "berth/serve/http/gzip.h"
#include "berth/serve/http/listener.h"
#include "berth/serve/http/wire.h"

namespace berth::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::chrono_literals;

using PlainStream = beast::basic_stream<Protocol, Executor>;
using SecureStream = asio::ssl::stream<PlainStream>;
using Task = asio::awaitable<void, Executor>;

constexpr std::size_t kMostConnections = 4000;
constexpr std::size_t kReadBytes = 4096;
constexpr auto kIdle = 75s;  // between two requests: longer than Prometheus' usual interval
constexpr auto kSeeingOff = 2s;
constexpr auto kSilence = 15s;                 // of an event stream, then a comment shows that it lives
constexpr std::size_t kMostErrands = 64;       // at a time: each may read much
constexpr std::size_t kMostFramesAtOnce = 16;  // what is newer meanwhile takes the place of the rest
constexpr auto kDraining = 2s;                 // for answers under way when the server is told to end

bool is_any(std::string_view host) {
  return host == "0.0.0.0" || host == "::";
}

/// As many descriptors as the system lets this process have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * kMostConnections);
  ::setrlimit(RLIMIT_NOFILE, &limit);
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
  explicit Body(Site site) : site_(std::move(site)) { raise_descriptor_limit(); }

  Result<void> apply(const Settings& settings) {
    std::string token;
    if (!settings.token_file.empty()) {
      auto read = read_token(settings.token_file);
      if (!read) return std::unexpected(read.error());
      token = std::move(*read);
    }
    TlsContext tls;
    if (!settings.tls_certificate.empty()) {
      auto context = tls_context(settings);
      if (!context) return std::unexpected(context.error());
      tls = std::move(*context);
    }
    if (auto opened = listen(settings); !opened) return opened;
    network_door_ = {.token = token,
                     .checks_host = token.empty() && settings.tls_clients.empty() && !settings.insecure};
    tls_ = std::move(tls);
    patience_ = std::chrono::seconds(settings.patience_s);
    return {};
  }

  std::vector<std::string> addresses() const {
    std::vector<std::string> names;
    for (const Listener& each : listeners_) {
      if (!each.network) {
        names.push_back("unix:" + each.address);
        continue;
      }
      names.push_back(fmt::format("{}://{}:{}", tls_ ? "https" : "http",
                                  each.address.substr(0, each.address.rfind(':')), each.port()));
    }
    return names;
  }

  asio::io_context& loop() { return io_; }

  void publish(std::shared_ptr<const Published> published) {
    asio::post(io_, [this, published = std::move(published)]() mutable {
      published_ = std::move(published);
      packer_.forget_what_is_gone();
      bell_.expires_after(kSilence);  // wakes all who wait for it
    });
  }

  void run(const std::function<void()>& reload) {
    asio::co_spawn(io_, obey_signals(reload), asio::detached);
    io_.run();
    close_all();
  }

 private:
  /// Once: later, the file of a Unix socket may be a successor's.
  void close_all() {
    for (const Listener& each : listeners_) each.close();
    listeners_.clear();
  }

  Result<void> listen(const Settings& settings) {
    std::vector<std::pair<std::string, bool>> wanted;
    for (const std::string& address : settings.listen) wanted.emplace_back(address, true);
    if (wanted.empty()) wanted.emplace_back(kDefaultAddress, true);
    if (!settings.socket.empty()) wanted.emplace_back(settings.socket, false);
    std::list<Listener> fresh;
    for (const auto& [address, network] : wanted) {
      if (std::ranges::find(listeners_, address, &Listener::address) != listeners_.end()) continue;
      auto listener = network ? listen_on_network(io_, address) : listen_on_socket(io_, address);
      if (!listener) {
        for (const Listener& each : fresh) each.close();
        if (network && is_in_our_way(address))
          return fail(ErrorCode::failure,
                      fmt::format("{}: this server has the port at another address; such a change needs a "
                                  "restart",
                                  address));
        return std::unexpected(listener.error());
      }
      fresh.push_back(std::move(*listener));
    }
    std::erase_if(listeners_, [&](const Listener& each) {
      const bool stays = std::ranges::find(wanted, std::pair(each.address, each.network)) != wanted.end();
      if (!stays) each.close();
      return !stays;
    });
    for (const Listener& each : fresh)
      asio::co_spawn(io_, accept_at(each.acceptor, each.network), asio::detached);
    listeners_.splice(listeners_.end(), fresh);
    return {};
  }

  /// Whether a listener of ours is what keeps this address from being listened at.
  bool is_in_our_way(const std::string& text) const {
    const auto wanted = tcp_address(text);
    return wanted && std::ranges::any_of(listeners_, [&](const Listener& each) {
             if (!each.network || each.port() != wanted->port) return false;
             const std::string host = tcp_address(each.address)->host;
             return host == wanted->host || is_any(host) || is_any(wanted->host);
           });
  }

  Task obey_signals(std::function<void()> reload) {
    while (true) {
      const auto [error, signal] = co_await signals_.async_wait(kAwait);
      if (signal != SIGHUP) break;
      reload();
    }
    ending_ = true;
    close_all();
    bell_.cancel();
    Timer patience(io_, kDraining);
    if (answering_ > 0) co_await patience.async_wait(kAwait);
    io_.stop();
  }

  Task accept_at(std::shared_ptr<Acceptor> acceptor, bool network) {
    while (true) {
      auto [error, socket] = co_await acceptor->async_accept(kAwait);
      if (!acceptor->is_open()) co_return;
      if (error) {  // no descriptors left: clients wait in the kernel's queue until some are
        Timer pause(io_, 100ms);
        co_await pause.async_wait(kAwait);
      } else if (connections_ < kMostConnections) {
        asio::co_spawn(io_, attend(PlainStream(std::move(socket)), network), asio::detached);
      }
    }
  }

  Task attend(PlainStream stream, bool network) {
    const Count connection(connections_);
    if (!network || !tls_) {
      co_await converse(stream, network);
      co_return;
    }
    const TlsContext context = tls_;  // a reload may put another in its place
    SecureStream secure(std::move(stream), *context);
    beast::get_lowest_layer(secure).expires_after(patience_);
    const auto [error] = co_await secure.async_handshake(asio::ssl::stream_base::server, kAwait);
    if (!error) co_await converse(secure, network);
  }

  template <class Stream>
  Task converse(Stream& stream, bool network) {
    beast::flat_buffer input(kMostHeaderBytes);
    for (bool keep_alive = true; keep_alive && !ending_;) {
      if (input.size() == 0 && !co_await read_more(stream, input)) co_return;
      http::request_parser<http::empty_body> parser;
      parser.header_limit(kMostHeaderBytes);
      beast::get_lowest_layer(stream).expires_after(patience_);
      const auto [error, size] = co_await http::async_read_header(stream, input, parser, kAwait);
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
      Answer answer =
          serve::answer(request_of(header), network ? network_door_ : socket_door_, site_, *published_);
      if (const auto* subscription = std::get_if<Subscription>(&answer)) {
        co_await send_events(stream, *subscription, manner.with_text);
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
    const Count under_way(answering_);
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
  Task send_events(Stream& stream, const Subscription& subscription, bool with_text) {
    const Page page{200, "text/event-stream", nullptr};
    const std::string head = head_of(page, {.length = std::nullopt, .keep_alive = false});
    const asio::const_buffer start = asio::buffer(head);
    if (!co_await write(stream, start) || !with_text) co_return;
    std::uint64_t sent = subscription.after <= published_->number ? subscription.after : 0;
    auto last_word = std::chrono::steady_clock::now();
    while (!ending_) {
      std::vector<SharedText> texts = frames_after(subscription.path, sent);
      const auto now = std::chrono::steady_clock::now();
      static const auto kComment = std::make_shared<const std::string>(":\n\n");
      if (texts.empty() && now - last_word >= kSilence) texts.push_back(kComment);
      if (!texts.empty()) {
        std::vector<asio::const_buffer> buffers;
        for (const SharedText& text : texts) buffers.push_back(asio::buffer(*text));
        if (!co_await write(stream, buffers)) co_return;
        last_word = now;
        continue;
      }
      beast::get_lowest_layer(stream).expires_never();
      if (bell_.expiry() <= now) bell_.expires_after(kSilence);
      co_await bell_.async_wait(kAwait);
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
  std::list<Listener> listeners_;
  Door network_door_;
  Door socket_door_{.token = "", .checks_host = false};
  TlsContext tls_;
  std::chrono::seconds patience_{};
  std::shared_ptr<const Published> published_ = std::make_shared<const Published>();
  std::size_t connections_ = 0;
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
