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

#include "berth/serve/http/listener.h"

namespace berth::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::chrono_literals;

using PlainStream = beast::basic_stream<Protocol, Executor>;
using SecureStream = asio::ssl::stream<PlainStream>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Task = asio::awaitable<void, Executor>;
const boost::system::error_category& kHttpErrors =
    http::make_error_code(http::error::end_of_stream).category();
// Errors are values; a coroutine of ours never throws.
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<Executor>());

constexpr std::size_t kMostConnections = 4000;
constexpr std::uint32_t kMostHeaderBytes = 16U << 10U;
constexpr std::size_t kReadBytes = 4096;
constexpr auto kIdle = 75s;  // between two requests: longer than Prometheus' usual interval
constexpr auto kSeeingOff = 2s;
constexpr auto kSilence = 15s;  // of an event stream, then a comment shows that it lives
constexpr auto kDraining = 2s;  // for answers under way when the server is told to end

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

template <class Header>
Request request_of(const Header& header) {
  return {.method = view(header.method_string()),
          .target = view(header.target()),
          .host = view(header[http::field::host]),
          .authorization = view(header[http::field::authorization]),
          .if_none_match = view(header[http::field::if_none_match])};
}

/// Status line and header. `length`: nullopt for a stream, which ends with its connection.
std::string head_of(const Answer& answer, std::optional<std::size_t> length, bool keep_alive) {
  const int status = answer.page.status;
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nServer: berth\r\nX-Content-Type-Options: nosniff\r\n",
                                 status, view(http::obsolete_reason(static_cast<http::status>(status))));
  // To be asked about each time, and then often answered with 304.
  head += "Cache-Control: no-cache\r\n";
  if (!answer.page.tag.empty()) head += fmt::format("ETag: {}\r\n", answer.page.tag);
  if (!answer.extra_header.empty()) head += fmt::format("{}\r\n", answer.extra_header);
  if (status != 304) head += fmt::format("Content-Type: {}\r\n", answer.page.type);
  if (length && status != 304) head += fmt::format("Content-Length: {}\r\n", *length);
  head += keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return head;
}

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
  Body() { raise_descriptor_limit(); }

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

  void publish(std::shared_ptr<const Published> published) {
    asio::post(io_, [this, published = std::move(published)]() mutable {
      published_ = std::move(published);
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
        if (error.category() != kHttpErrors || error == http::error::end_of_stream) co_return;
        const Answer answer{Answer::Kind::page, refusal_of(error)};
        if (co_await send(stream, answer, true, false)) co_await see_off(stream, input);
        co_return;
      }
      // A body is never read: what it says cannot matter.
      const bool has_body = parser.chunked() || parser.content_length_remaining().value_or(0) > 0;
      keep_alive = parser.get().keep_alive() && !has_body && !ending_;
      const Request request = request_of(parser.get());
      const Answer answer = serve::answer(request, network ? network_door_ : socket_door_, *published_);
      const bool with_text = request.method != "HEAD";
      if (answer.kind == Answer::Kind::event_stream) {
        co_await send_events(stream, with_text);
        co_return;
      }
      if (!co_await send(stream, answer, with_text, keep_alive)) co_return;
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

  static Page refusal_of(const boost::system::error_code& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refusal(431, fmt::format("the header is longer than {} bytes", kMostHeaderBytes));
    if (error == http::error::body_limit) return refusal(413, "a request has no body here");
    return refusal(400, "this is no HTTP request: " + error.message());
  }

  template <class Stream>
  asio::awaitable<bool, Executor> send(Stream& stream, const Answer& answer, bool with_text,
                                       bool keep_alive) {
    const Count under_way(answering_);
    const std::string head = head_of(answer, answer.page.text->size(), keep_alive);
    const SharedText text = with_text ? answer.page.text : std::make_shared<const std::string>();
    const std::array<asio::const_buffer, 2> parts{asio::buffer(head), asio::buffer(*text)};
    co_return co_await write(stream, parts);
  }

  template <class Stream, class Buffers>
  asio::awaitable<bool, Executor> write(Stream& stream, const Buffers& buffers) {
    beast::get_lowest_layer(stream).expires_after(patience_);
    const auto [error, size] = co_await asio::async_write(stream, buffers, kAwait);
    co_return !error;
  }

  /// Each client gets the newest when it has taken the one before: a slow one misses some, and holds up
  /// nobody.
  template <class Stream>
  Task send_events(Stream& stream, bool with_text) {
    const Answer answer{Answer::Kind::event_stream, {200, "text/event-stream", nullptr, ""}};
    const std::string head = head_of(answer, std::nullopt, false);
    const asio::const_buffer start = asio::buffer(head);
    if (!co_await write(stream, start) || !with_text) co_return;
    std::uint64_t sent = 0;
    while (!ending_) {
      static const auto kComment = std::make_shared<const std::string>(":\n\n");
      const SharedText text = published_->number == sent ? kComment : published_->event;
      sent = published_->number;
      const asio::const_buffer event = asio::buffer(*text);
      if (!co_await write(stream, event)) co_return;
      beast::get_lowest_layer(stream).expires_never();
      if (published_->number != sent) continue;
      if (bell_.expiry() <= std::chrono::steady_clock::now()) bell_.expires_after(kSilence);
      co_await bell_.async_wait(kAwait);
    }
  }

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
  bool ending_ = false;
};

HttpServer::HttpServer() : body_(std::make_unique<Body>()) {}
HttpServer::~HttpServer() = default;

Result<void> HttpServer::apply(const Settings& settings) {
  return body_->apply(settings);
}

std::vector<std::string> HttpServer::addresses() const {
  return body_->addresses();
}

void HttpServer::publish(std::shared_ptr<const Published> published) {
  body_->publish(std::move(published));
}

void HttpServer::run(const std::function<void()>& reload) {
  body_->run(reload);
}

}  // namespace berth::serve
