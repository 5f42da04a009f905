#include "berth/net/client.h"

#include <array>
#include <map>
#include <optional>
#include <tuple>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "berth/base/text.h"
#include "berth/net/background_work.h"
#include "berth/net/listener.h"
#include "berth/view/answers_json.h"

// A kept connection to one peer, which may take only a bounded time and memory. As in
// http_server.cpp, a coroutine is given variables, never temporaries, and no co_await stands in a
// conditional expression.
namespace berth::net {

using ClientContext = std::shared_ptr<asio::ssl::context>;

class ClientSharing {
 public:
  explicit ClientSharing(asio::io_context& loop) : resolver(loop) {}

  /// Read once for all who have the same files.
  Result<ClientContext> context_for(const http::Peer& peer);

  Resolver resolver;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, ClientContext> contexts_;
};

namespace {

namespace beast = boost::beast;

using SecureStream = asio::ssl::stream<PlainStream&>;
using Time = Resolver::Time;
constexpr std::uint32_t kMostReplyHeaderBytes = 16U << 10U;
/// Of what is not understood yet: also the line that begins a chunk may have no end.
constexpr std::size_t kMostUnread = 64U << 10U;
constexpr std::size_t kPiece = 16U << 10U;  // of an answer without an end

/// How far the request had come when it failed.
enum class Stage { connecting, securing, asking, reading };

std::string_view to_text(Stage step) {
  switch (step) {
    case Stage::connecting:
      return "connecting";
    case Stage::securing:
      return "agreeing on TLS";
    case Stage::asking:
    case Stage::reading:
      return "connected, and waiting for the answer";
  }
  return "";
}

struct ExchangeFailure {
  Stage step = Stage::connecting;
  boost::system::error_code error;
  std::string certificate{};  ///< what is wrong with it
};

bool is_numeric(const std::string& host) {
  boost::system::error_code error;
  (void)asio::ip::make_address(host, error);
  return !error;
}

Result<ClientContext> read_context(const http::Peer& peer) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  boost::system::error_code error;
  const auto broken = [&](std::string_view what, const std::string& file) {
    return fail(ErrorCode::failure, "reading the {} {}: {}", what, file, error.message());
  };
  (void)context->set_verify_mode(asio::ssl::verify_peer, error);
  if (peer.authorities.empty()) {
    (void)context->set_default_verify_paths(error);
  } else {
    (void)context->load_verify_file(peer.authorities, error);
  }
  if (error) return broken("authorities", peer.authorities);
  if (peer.certificate.empty()) return context;
  BERTH_DO(use_key_pair(*context, peer.certificate, peer.key));
  return context;
}

/// The certificate must be the host's own, and not only signed by somebody trusted. False: that
/// cannot be asked for; OpenSSL would go on without.
bool expect(SSL* ssl, const std::string& host) {
  if (!is_numeric(host))
    return SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  // The zone of "fe80::1%eth0" is this machine's way to the address, and no part of it.
  const std::string address = host.substr(0, host.find('%'));
  return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), address.c_str()) == 1;
}

std::string head_for(const http::Peer& peer, std::string_view method, std::string_view target) {
  const bool bracketed = peer.host.find(':') != std::string::npos;
  std::string text = fmt::format(
      "{} {}{} HTTP/1.1\r\nHost: {}{}{}:{}\r\nUser-Agent: berth\r\nAccept: application/json\r\n", method,
      peer.prefix, target, bracketed ? "[" : "", peer.host, bracketed ? "]" : "", peer.port);
  // etcd takes its token without a scheme.
  if (!peer.token.empty())
    text += fmt::format("Authorization: {}{}\r\n", peer.is_store ? "" : "Bearer ", peer.token);
  return text;
}

std::string request_for(const http::Peer& peer, std::string_view target, std::string_view tag) {
  std::string text = head_for(peer, "GET", target);
  if (!tag.empty()) text += fmt::format("If-None-Match: {}\r\n", tag);
  return text + "\r\n";
}

std::string post_for(const http::Peer& peer, std::string_view target, std::string_view body) {
  return fmt::format("{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                     head_for(peer, "POST", target), body.size(), body);
}

std::string copied(beast::string_view text) {
  return {text.data(), text.size()};
}

bool is_of_http(const boost::system::error_code& error) {
  return error.category() == beast::http::make_error_code(beast::http::error::end_of_stream).category();
}

bool has_ended(const boost::system::error_code& error) {
  return error == beast::http::error::end_of_stream || error == beast::http::error::partial_message ||
         error == asio::error::eof || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::ssl::error::stream_truncated;
}

/// The time and memory that a peer may take.
struct Bounds {
  std::chrono::milliseconds patience;
  std::size_t most_bytes;
};

std::string sentence(const ExchangeFailure& fault, const http::Peer& peer, const Bounds& bounds) {
  const boost::system::error_code& error = fault.error;
  if (error == beast::error::timeout)
    return fmt::format("no answer within {:g} s ({})", static_cast<double>(bounds.patience.count()) / 1000.0,
                       to_text(fault.step));
  if (error == asio::error::connection_refused || error == boost::system::errc::no_such_file_or_directory)
    return fmt::format("nobody listens at {}; start {} there", url_of(peer),
                       peer.is_store ? "etcd" : "`berth serve`");
  if (!fault.certificate.empty())
    return fmt::format("its certificate is not accepted: {}", fault.certificate);
  if (fault.step == Stage::securing)
    return fmt::format("no TLS could be agreed on with {} ({}); does it speak http://?", url_of(peer),
                       error.message());
  if (error == beast::http::error::body_limit)
    return fmt::format("its answer is longer than {} KiB, and was not read", bounds.most_bytes >> 10U);
  if (has_ended(error)) return "it ended the connection before its answer was whole";
  if (is_of_http(error)) return fmt::format("what it answers is no HTTP ({})", error.message());
  return fmt::format("{}: {}", to_text(fault.step), error.message());
}

}  // namespace

Result<ClientContext> ClientSharing::context_for(const http::Peer& peer) {
  ClientContext& context = contexts_[{peer.authorities, peer.certificate, peer.key}];
  if (context) return context;
  auto read = read_context(peer);
  if (read) context = *read;
  return read;
}

class Client::Body {
 public:
  Body(asio::io_context& loop, std::shared_ptr<ClientSharing> sharing, http::Peer peer,
       std::size_t most_bytes)
      : loop_(loop), sharing_(std::move(sharing)), peer_(std::move(peer)), most_bytes_(most_bytes) {}

  const http::Peer& peer() const { return peer_; }

  /// Its readers and writers get an error, and disconnect.
  void hang_up() {
    if (plain_) plain_->close();
  }

  Coroutine<Result<http::Response>> ask(std::string request, std::chrono::milliseconds patience) {
    const Time until = std::chrono::steady_clock::now() + patience;
    const Bounds bounds{patience, most_bytes_};
    while (true) {
      const bool was_kept = plain_.has_value();
      if (!was_kept) {
        const Result<void> connected = co_await connect(until, bounds);
        if (!connected) {
          disconnect();
          co_return std::unexpected(connected.error());
        }
      }
      plain_->expires_at(until);
      http::Response response;
      std::optional<ExchangeFailure> fault;
      if (secure_) {
        fault = co_await exchange(*secure_, request, response);
      } else {
        fault = co_await exchange(*plain_, request, response);
      }
      if (!fault) co_return response;
      disconnect();
      // The peer may end a kept connection at any time, also while it is asked: that is no failure
      // of its.
      if (was_kept && has_ended(fault->error) && response.status == 0) continue;
      co_return fail(ErrorCode::failure, sentence(*fault, peer_, bounds));
    }
  }

  Coroutine<Error> follow(std::string request, std::chrono::milliseconds patience,
                          std::function<void(std::string_view)> heard) {
    const Bounds bounds{patience, most_bytes_};
    disconnect();
    const Result<void> connected = co_await connect(std::chrono::steady_clock::now() + patience, bounds);
    if (!connected) {
      disconnect();
      co_return connected.error();
    }
    std::optional<ExchangeFailure> fault;
    if (secure_) {
      fault = co_await listen(*secure_, request, heard);
    } else {
      fault = co_await listen(*plain_, request, heard);
    }
    disconnect();
    co_return Error{ErrorCode::failure, sentence(*fault, peer_, bounds)};
  }

 private:
  void disconnect() {
    secure_.reset();
    plain_.reset();
  }

  Coroutine<Result<std::vector<Protocol::endpoint>>> find_peer(Time until) {
    if (peer_.socket.empty()) co_return co_await sharing_->resolver.find(peer_.host, peer_.port, until);
    if (peer_.socket.size() >= sizeof(sockaddr_un::sun_path))
      co_return fail(ErrorCode::usage, "{}: the path is too long for a socket", peer_.socket);
    co_return std::vector<Protocol::endpoint>{asio::local::stream_protocol::endpoint(peer_.socket)};
  }

  Coroutine<Result<void>> connect(Time until, Bounds bounds) {
    BERTH_CO_LET(const auto endpoints, co_await find_peer(until));
    ExchangeFailure fault;
    for (std::size_t left = endpoints.size(); left > 0; --left) {
      // A silent address must leave time for the others.
      const Time now = std::chrono::steady_clock::now();
      plain_.emplace(loop_.get_executor());
      plain_->expires_at(now + (until - now) / left);
      const Protocol::endpoint& each = endpoints[endpoints.size() - left];
      const auto [error] = co_await plain_->async_connect(each, kAwait);
      fault.error = error;
      if (!error) break;
    }
    if (fault.error) co_return fail(ErrorCode::failure, sentence(fault, peer_, bounds));
    plain_->expires_at(until);
    boost::system::error_code ignored;
    (void)plain_->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    if (!peer_.tls) co_return Result<void>();
    BERTH_CO_LET(const auto context, sharing_->context_for(peer_));
    secure_ = std::make_unique<SecureStream>(*plain_, *context);
    if (!expect(secure_->native_handle(), peer_.host))
      co_return fail(ErrorCode::failure, "no certificate can be expected of '{}'", peer_.host);
    const auto [error] = co_await secure_->async_handshake(asio::ssl::stream_base::client, kAwait);
    if (!error) co_return Result<void>();
    fault = {Stage::securing, error};
    if (const long verdict = SSL_get_verify_result(secure_->native_handle()); verdict != X509_V_OK)
      fault.certificate = X509_verify_cert_error_string(verdict);
    co_return fail(ErrorCode::failure, sentence(fault, peer_, bounds));
  }

  template <class Stream>
  Coroutine<std::optional<ExchangeFailure>> exchange(Stream& stream, const std::string& request,
                                                     http::Response& response) {
    const asio::const_buffer text = asio::buffer(request);
    const auto [not_sent, sent] = co_await asio::async_write(stream, text, kAwait);
    if (not_sent) co_return ExchangeFailure{Stage::asking, not_sent};
    beast::flat_buffer input(kMostUnread);
    beast::http::response_parser<beast::http::string_body> parser;
    parser.header_limit(kMostReplyHeaderBytes);
    parser.body_limit(most_bytes_);
    const auto [error, size] = co_await beast::http::async_read(stream, input, parser, kAwait);
    if (size > 0) response.status = parser.get().result_int();
    if (error) co_return ExchangeFailure{Stage::reading, error};
    auto& message = parser.get();
    response.type = copied(message[beast::http::field::content_type]);
    response.tag = copied(message[beast::http::field::etag]);
    response.body = std::move(message.body());
    if (!message.keep_alive() || input.size() > 0) disconnect();
    co_return std::nullopt;
  }

  template <class Stream>
  Coroutine<std::optional<ExchangeFailure>> listen(Stream& stream, const std::string& request,
                                                   const std::function<void(std::string_view)>& heard) {
    const asio::const_buffer text = asio::buffer(request);
    const auto [not_sent, sent] = co_await asio::async_write(stream, text, kAwait);
    if (not_sent) co_return ExchangeFailure{Stage::asking, not_sent};
    beast::flat_buffer input(kMostUnread);
    beast::http::response_parser<beast::http::buffer_body> parser;
    parser.header_limit(kMostReplyHeaderBytes);
    parser.body_limit(boost::none);
    const auto [not_begun, head] = co_await beast::http::async_read_header(stream, input, parser, kAwait);
    if (not_begun) co_return ExchangeFailure{Stage::reading, not_begun};
    plain_->expires_never();
    std::array<char, kPiece> piece{};
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      const auto [error, size] = co_await beast::http::async_read_some(stream, input, parser, kAwait);
      if (error && error != beast::http::error::need_buffer) co_return ExchangeFailure{Stage::reading, error};
      heard({piece.data(), piece.size() - parser.get().body().size});
    }
    co_return ExchangeFailure{Stage::reading, beast::http::error::end_of_stream};
  }

  asio::io_context& loop_;
  std::shared_ptr<ClientSharing> sharing_;
  http::Peer peer_;
  std::size_t most_bytes_;
  std::optional<PlainStream> plain_;
  std::unique_ptr<SecureStream> secure_;
};

std::shared_ptr<ClientSharing> client_sharing(asio::io_context& loop) {
  return std::make_shared<ClientSharing>(loop);
}

Client::Client(asio::io_context& loop, std::shared_ptr<ClientSharing> sharing, http::Peer peer,
               std::size_t most_bytes)
    : body_(std::make_unique<Body>(loop, std::move(sharing), std::move(peer), most_bytes)) {}
Client::~Client() = default;

Coroutine<Result<http::Response>> Client::get(const std::string& target, const std::string& tag,
                                              std::chrono::milliseconds patience) {
  return body_->ask(request_for(body_->peer(), target, tag), patience);
}

Coroutine<Result<http::Response>> Client::post(const std::string& target, const std::string& body,
                                               std::chrono::milliseconds patience) {
  return body_->ask(post_for(body_->peer(), target, body), patience);
}

Coroutine<Error> Client::follow(const std::string& target, const std::string& body,
                                std::chrono::milliseconds patience,
                                std::function<void(std::string_view)> heard) {
  return body_->follow(post_for(body_->peer(), target, body), patience, std::move(heard));
}

void Client::hang_up() {
  body_->hang_up();
}

Result<http::Response> get_once(const http::Peer& peer, const std::string& target,
                                std::chrono::milliseconds patience, std::size_t most_bytes) {
  asio::io_context loop{1};
  Client client(loop, client_sharing(loop), peer, most_bytes);
  Result<http::Response> answer = fail(ErrorCode::failure, "it was not asked");
  const auto ask = [&]() -> Coroutine<> { answer = co_await client.get(target, "", patience); };
  asio::co_spawn(loop, ask(), asio::detached);
  loop.run();
  return answer;
}

Result<std::string> document_in(http::Response response, std::string_view asking) {
  constexpr int kWantsToken = 401;
  if (response.status == 200) return std::move(response.body);
  if (response.status == kWantsToken)
    return fail(ErrorCode::failure, "{}: it wants a token; give it with --token-file FILE", asking);
  const std::string message = view::message_of_error(response.body);
  return fail(
      ErrorCode::failure, "{}: {}", asking,
      message.empty() ? fmt::format("it answers with HTTP status {}", response.status) : printable(message));
}

}  // namespace berth::net
