#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "berth/agent/peer.h"
#include "berth/core/error.h"
#include "berth/net/listener.h"

namespace berth::serve {

/// The most that is read of an answer, where nobody says otherwise.
inline constexpr std::size_t kMostBodyBytes = 4U << 20U;

/// What clients of one loop share: names that were looked up, certificates that were read. A name that is
/// looked up in vain holds up nobody but who asked for it.
class ClientSharing;

/// Asks one peer, again and again, over a connection that is kept. Not for two questions at a time.
class Client {
 public:
  Client(asio::io_context& loop, std::shared_ptr<ClientSharing> sharing, Peer peer,
         std::size_t most_bytes = kMostBodyBytes);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// GET, with everything that goes before it, within `patience`. `tag`: answer 304 while it has not changed;
  /// "" for none. Error: `failure`, with what happened and what to do; there was no whole answer.
  asio::awaitable<Result<Response>, Executor> get(const std::string& target, const std::string& tag,
                                                  std::chrono::milliseconds patience);
  /// POST of a JSON text, as above. It may have been understood although there was no answer, and is sent
  /// again where a kept connection has ended: what is asked must bear that.
  asio::awaitable<Result<Response>, Executor> post(const std::string& target, const std::string& body,
                                                   std::chrono::milliseconds patience);
  /// POST whose answer has no end. Calls `heard` with each piece of it that has come, until it ends.
  /// `patience`: until it has begun.
  asio::awaitable<Error, Executor> follow(const std::string& target, const std::string& body,
                                          std::chrono::milliseconds patience,
                                          std::function<void(std::string_view)> heard);
  /// Ends the connection, and with it what is being asked.
  void hang_up();

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

std::shared_ptr<ClientSharing> client_sharing(asio::io_context& loop);

/// One question on a loop of its own, for a program that waits for it. Error: as above.
Result<Response> get_once(const Peer& peer, const std::string& target, std::chrono::milliseconds patience,
                          std::size_t most_bytes = kMostBodyBytes);

}  // namespace berth::serve
