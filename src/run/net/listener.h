#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/basic_stream.hpp>

#include "berth/base/error.h"
#include "berth/http/answer.h"
#include "berth/http/settings.h"

namespace berth::net {

/// Uses this certificate for the connections of a context, as server or as client. Error: a file
/// cannot be read, or the key belongs to another certificate.
Result<void> use_key_pair(boost::asio::ssl::context& context, const std::string& certificate,
                          const std::string& key);

}  // namespace berth::net

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
using Coroutine = asio::awaitable<T, Executor>;
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

/// All addresses and sockets at which a server listens.
class Listeners {
 public:
  /// `accept` gets each listener that is opened, and accepts its clients until the listener is
  /// closed.
  Listeners(asio::io_context& io, std::function<void(const Listener&)> accept);

  /// From now on listens only where the settings say. Error: nothing has changed.
  Result<void> listen(const http::Settings& settings);
  /// "http://127.0.0.1:8420": one URL for each address, with the ports that the system chose.
  std::vector<std::string> names(bool tls) const;
  /// To be called once: later, the file of a Unix socket may be that of a successor.
  void close();

 private:
  using Wanted = std::vector<std::pair<std::string, bool>>;  // address, and whether it is the network's

  struct Left {
    std::string address;            // as in the settings
    std::string address_with_port;  // where the settings leave the port to the system
  };

  Result<std::list<Listener>> open_missing(const Wanted& wanted) const;
  std::vector<Left> leave_ports_of(const Wanted& wanted);
  void take_back(const std::vector<Left>& left);
  void take(std::list<Listener> fresh);

  asio::io_context& io_;
  std::function<void(const Listener&)> accept_;
  std::list<Listener> open_;
};

using PlainStream = boost::beast::basic_stream<Protocol, Executor>;

/// How many connections there may be. Some descriptors are kept for the looks at the machine, so
/// that clients cannot stop them, and some for the Unix socket, so that the network cannot use them
/// up.
void allow_connections(http::Connections& network, http::Connections& local);

/// Clients of the network, or of the Unix socket.
struct ListenerGroup {
  http::AccessRule access{};
  http::Connections connections{};
  std::map<http::Connections::Id, PlainStream*> streams{};
  std::uint64_t admission = 0;  // increases when the rule who may ask has changed
  std::chrono::steady_clock::time_point warned{};
};

/// The place of a connection.
class ConnectionSlot {
 public:
  ConnectionSlot(ListenerGroup& group, http::Connections::Id id, PlainStream& stream)
      : group_(group), id_(id) {
    group_.streams.emplace(id, &stream);
    group_.connections.waits(id);
  }
  ~ConnectionSlot() {
    group_.connections.leaves(id_);
    group_.streams.erase(id_);
  }
  ConnectionSlot(const ConnectionSlot&) = delete;
  ConnectionSlot& operator=(const ConnectionSlot&) = delete;

  void waits() const { group_.connections.waits(id_); }
  void is_served() const { group_.connections.is_served(id_); }

 private:
  ListenerGroup& group_;
  http::Connections::Id id_;
};

/// A task without an end. If memory runs out in the middle of it, it begins again a second later.
template <class Owner>
void keep_going(asio::io_context& loop, const std::shared_ptr<Owner>& owner,
                Coroutine<> (*task)(std::shared_ptr<Owner>)) {
  asio::co_spawn(loop, task(owner), [&loop, owner, task](const std::exception_ptr& fault) {
    if (!fault) return;
    const auto pause = std::make_shared<Timer>(loop);
    pause->expires_after(std::chrono::seconds(1));
    pause->async_wait(
        [&loop, owner, task, pause](const boost::system::error_code&) { keep_going(loop, owner, task); });
  });
}

}  // namespace berth::net
