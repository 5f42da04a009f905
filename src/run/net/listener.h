#pragma once

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "berth/base/error.h"
#include "berth/http/settings.h"

// For all that is asynchronous.
namespace berth {
namespace asio = boost::asio;
}  // namespace berth

namespace berth::net {

using Executor = asio::io_context::executor_type;
using Protocol = asio::generic::stream_protocol;  ///< TCP and Unix sockets alike
using Acceptor = asio::basic_socket_acceptor<Protocol, Executor>;
using TlsContext = std::shared_ptr<asio::ssl::context>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
/// What a coroutine returns that answers with a T.
template <class T = void>
using Task = asio::awaitable<T, Executor>;
/// Errors are values; a coroutine of ours never throws.
inline constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<Executor>());

/// A listening socket.
struct Listener {
  std::string address;  ///< as in the settings
  bool network = true;  ///< false: a Unix socket; its file is removed when it is closed
  std::shared_ptr<Acceptor> acceptor;

  /// The port. If the address left it to the system, the one that the system chose. REQUIRES:
  /// network.
  std::uint16_t port() const;
  void close() const;
};

/// Error: `failure` if the address is taken, or is not one of this machine.
Result<Listener> listen_on_network(asio::io_context& io, const std::string& address);
/// Replaces a file that a killed server has left. Error: `failure`, as above; `usage` if the path
/// is too long.
Result<Listener> listen_on_socket(asio::io_context& io, const std::string& path);

/// With the certificates that the settings name. Error: `failure`, with the file.
Result<TlsContext> tls_context(const http::Settings& settings);

}  // namespace berth::net
