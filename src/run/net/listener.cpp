#include "berth/net/listener.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "berth/base/fail.h"
#include "berth/net/key_pair.h"

namespace berth::net {
namespace {

constexpr int kBacklog = 1024;

// Asio both takes the error by reference and returns it; here the former is looked at.

Error broken(std::string_view doing, const boost::system::error_code& error) {
  return {ErrorCode::failure, fmt::format("{}: {}", doing, error.message())};
}

Result<Listener> open_listener(asio::io_context& io, std::string address, bool network,
                               const Protocol::endpoint& endpoint) {
  auto acceptor = std::make_shared<Acceptor>(io.get_executor());
  boost::system::error_code error;
  (void)acceptor->open(endpoint.protocol(), error);
  if (!error && network) (void)acceptor->set_option(asio::socket_base::reuse_address(true), error);
  if (!error) (void)acceptor->bind(endpoint, error);
  if (!error) (void)acceptor->listen(kBacklog, error);
  if (error == asio::error::address_in_use)
    return fail(ErrorCode::failure,
                "{} is taken by another program (ss -lntxp shows it){}: end that, or choose another", address,
                network ? "" : " or is no socket");
  if (error == boost::system::errc::address_not_available)
    return fail(ErrorCode::failure, "{} is no address of this machine, or not yet (ip address shows them)",
                address);
  if (error) return std::unexpected(broken("listening on " + address, error));
  return Listener{std::move(address), network, std::move(acceptor)};
}

/// A socket that nobody listens at any more was left by a server that was killed. A file of another
/// kind refuses connections as well.
bool is_left_over(asio::io_context& io, const asio::local::stream_protocol::endpoint& endpoint) {
  struct stat file{};
  if (::lstat(endpoint.path().c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return false;
  asio::local::stream_protocol::socket socket(io);
  boost::system::error_code error;
  (void)socket.open(endpoint.protocol(), error);
  if (!error) (void)socket.non_blocking(true, error);  // a server that is stuck takes no connection
  if (!error) (void)socket.connect(endpoint, error);
  return error == asio::error::connection_refused;
}

}  // namespace

std::uint16_t Listener::port() const {
  boost::system::error_code ignored;
  const auto endpoint = acceptor->local_endpoint(ignored);
  const auto* in = reinterpret_cast<const sockaddr_in*>(endpoint.data());  // it is where IPv6 has it too
  return ntohs(in->sin_port);
}

void Listener::close() const {
  boost::system::error_code ignored;
  (void)acceptor->close(ignored);
  if (!network) ::unlink(address.c_str());
}

Result<Listener> listen_on_network(asio::io_context& io, const std::string& text) {
  BERTH_LET(const auto address, http::tcp_address(text));
  boost::system::error_code error;
  const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(address.host, error), address.port);
  if (error) return std::unexpected(broken("listening on " + text, error));
  return open_listener(io, text, true, endpoint);
}

Result<Listener> listen_on_socket(asio::io_context& io, const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::usage, "--socket {}: a path must be shorter than {} bytes", path,
                sizeof(sockaddr_un::sun_path));
  const asio::local::stream_protocol::endpoint endpoint(path);
  if (is_left_over(io, endpoint)) ::unlink(path.c_str());
  auto listener = open_listener(io, path, false, endpoint);
  // A user who can log in could run `berth list` as well.
  if (listener) ::fchmodat(AT_FDCWD, path.c_str(), 0666, AT_SYMLINK_NOFOLLOW);
  return listener;
}

Result<TlsContext> tls_context(const http::Settings& settings) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // Of TLS 1.2 what keeps its secrets when the key becomes known, and tells of a changed byte: all
  // that 1.3 has.
  SSL_CTX_set_cipher_list(native, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // A session taken up again would not have shown its certificate.
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  BERTH_DO(use_key_pair(*context, settings.tls_certificate, settings.tls_key));
  if (settings.tls_clients.empty()) return context;
  boost::system::error_code error;
  (void)context->load_verify_file(settings.tls_clients, error);
  if (error) return std::unexpected(broken("reading the authorities " + settings.tls_clients, error));
  (void)context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  return context;
}

}  // namespace berth::net
