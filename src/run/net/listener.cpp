#include "berth/net/listener.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509err.h>

#include "berth/base/text.h"

namespace berth::net {
namespace {

Error unreadable(std::string_view what, const std::string& file, const boost::system::error_code& error) {
  return {ErrorCode::failure, fmt::format("reading the {} {}: {}", what, file, error.message())};
}

bool is_of_another(const boost::system::error_code& error) {
  const auto code = static_cast<unsigned long>(error.value());
  return ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH;
}

}  // namespace

Result<void> use_key_pair(boost::asio::ssl::context& context, const std::string& certificate,
                          const std::string& key) {
  boost::system::error_code error;
  (void)context.use_certificate_chain_file(certificate, error);
  if (error) return std::unexpected(unreadable("certificate", certificate, error));
  (void)context.use_private_key_file(key, boost::asio::ssl::context::pem, error);
  if (error && !is_of_another(error)) return std::unexpected(unreadable("key", key, error));
  // OpenSSL keeps a certificate and a key of two kinds side by side, and then no handshake
  // succeeds.
  if (!error && SSL_CTX_check_private_key(context.native_handle()) == 1) return {};
  return fail(ErrorCode::failure,
              "the key {} is not that of the certificate {}: give those that were made together", key,
              certificate);
}

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
  if (listener && ::fchmodat(AT_FDCWD, path.c_str(), 0666, AT_SYMLINK_NOFOLLOW) != 0)
    return std::unexpected(sys::system_error(errno, "opening " + path + " to all users"));
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

namespace {

bool is_wanted(const Listener& listener, const std::vector<std::pair<std::string, bool>>& wanted) {
  return std::ranges::find(wanted, std::pair(listener.address, listener.network)) != wanted.end();
}

std::string host_of(const Listener& listener) {
  return listener.address.substr(0, listener.address.rfind(':'));
}

}  // namespace

Listeners::Listeners(asio::io_context& io, std::function<void(const Listener&)> accept)
    : io_(io), accept_(std::move(accept)) {}

Result<void> Listeners::listen(const http::Settings& settings) {
  Wanted wanted;
  for (const std::string& address : settings.listen) wanted.emplace_back(address, true);
  if (wanted.empty()) wanted.emplace_back(http::kDefaultAddress, true);
  if (!settings.socket.empty()) wanted.emplace_back(settings.socket, false);
  auto fresh = open_missing(wanted);
  if (!fresh) {
    // A listener that is to be closed may be what blocks its port.
    const std::vector<Left> left = leave_ports_of(wanted);
    if (!left.empty()) fresh = open_missing(wanted);
    if (!fresh) take_back(left);
  }
  if (!fresh) return std::unexpected(fresh.error());
  std::erase_if(open_, [&](const Listener& each) {
    const bool stays = is_wanted(each, wanted);
    if (!stays) each.close();
    return !stays;
  });
  take(std::move(*fresh));
  return {};
}

Result<std::list<Listener>> Listeners::open_missing(const Wanted& wanted) const {
  std::list<Listener> fresh;
  for (const auto& [address, network] : wanted) {
    if (std::ranges::find(open_, address, &Listener::address) != open_.end()) continue;
    auto listener = network ? listen_on_network(io_, address) : listen_on_socket(io_, address);
    if (!listener) {
      for (const Listener& each : fresh) each.close();
      return std::unexpected(listener.error());
    }
    fresh.push_back(std::move(*listener));
  }
  return fresh;
}

/// Closes those of the network that are not wanted and have a port that is.
std::vector<Listeners::Left> Listeners::leave_ports_of(const Wanted& wanted) {
  std::vector<Left> left;
  std::erase_if(open_, [&](const Listener& each) {
    if (!each.network || is_wanted(each, wanted)) return false;
    const std::uint16_t port = each.port();
    const bool is_in_the_way = std::ranges::any_of(wanted, [&](const auto& other) {
      const auto address = http::tcp_address(other.first);
      return other.second && address && address->port == port;
    });
    if (!is_in_the_way) return false;
    left.push_back({each.address, fmt::format("{}:{}", host_of(each), port)});
    each.close();
    return true;
  });
  return left;
}

/// A process that took such a port in this moment keeps it: the error says that the port is taken.
void Listeners::take_back(const std::vector<Left>& left) {
  std::list<Listener> again;
  for (const Left& each : left) {
    auto listener = listen_on_network(io_, each.address_with_port);
    if (!listener) continue;
    listener->address = each.address;
    again.push_back(std::move(*listener));
  }
  take(std::move(again));
}

void Listeners::take(std::list<Listener> fresh) {
  for (const Listener& each : fresh) accept_(each);
  open_.splice(open_.end(), fresh);
}

std::vector<std::string> Listeners::names(bool tls) const {
  std::vector<std::string> names;
  for (const Listener& each : open_) {
    names.push_back(each.network
                        ? fmt::format("{}://{}:{}", tls ? "https" : "http", host_of(each), each.port())
                        : "unix:" + each.address);
  }
  return names;
}

void Listeners::close() {
  for (const Listener& each : open_) each.close();
  open_.clear();
}

namespace {

constexpr std::size_t kMostConnections = 4000;
constexpr std::size_t kMostLocalConnections = 500;

/// As many descriptors as the system lets this process have. Returns how many that is.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostConnections;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * kMostConnections);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace

void allow_connections(http::Connections& network, http::Connections& local) {
  const std::size_t descriptors = raise_descriptor_limit();
  const std::size_t most = std::min(kMostConnections, descriptors / 8 * 5);
  network.allow(most, most / 2);
  const std::size_t most_local = std::min(kMostLocalConnections, descriptors / 8);
  local.allow(most_local, most_local);
}

}  // namespace berth::net
