#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/http/settings.h"
#include "berth/net/listener.h"

namespace berth::net {

/// How much of an answer is read, unless the caller says otherwise.
inline constexpr std::size_t kMostBodyBytes = 4U << 20U;

/// What clients of one loop share: names that were looked up, certificates that were read. A name
/// that cannot be looked up delays only the client that asked for it.
class ClientSharing;

/// Asks one peer, again and again, over a connection that stays open. Not for two questions at a
/// time.
class Client {
 public:
  Client(asio::io_context& loop, std::shared_ptr<ClientSharing> sharing, http::Peer peer,
         std::size_t most_bytes = kMostBodyBytes);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// GET. `patience`: for everything, including the connection. `tag`: the peer answers 304 if the
  /// text still has this ETag; "" for none. Error: `failure`, with what happened and what to do, if
  /// there was no whole answer.
  Coroutine<Result<http::Response>> get(const std::string& target, const std::string& tag,
                                        std::chrono::milliseconds patience);
  /// POST of a JSON text, as above. The peer may have obeyed it although no answer came. If the
  /// open connection has ended, it is sent again. So the request must be one that may be made
  /// twice.
  Coroutine<Result<http::Response>> post(const std::string& target, const std::string& body,
                                         std::chrono::milliseconds patience);
  /// POST whose answer has no end. Calls `heard` with each piece that comes, until the answer ends.
  /// `patience`: until the answer has begun.
  Coroutine<Error> follow(const std::string& target, const std::string& body,
                          std::chrono::milliseconds patience, std::function<void(std::string_view)> heard);
  /// Ends the connection, and with it a question under way.
  void hang_up();

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

std::shared_ptr<ClientSharing> client_sharing(asio::io_context& loop);

/// One question on a loop of its own, for a program that waits for it. Error: as above.
Result<http::Response> get_once(const http::Peer& peer, const std::string& target,
                                std::chrono::milliseconds patience, std::size_t most_bytes = kMostBodyBytes);

/// Takes the document that a command has asked for out of the answer. `asking`: "asking
/// http://hub". Error: `failure`, with why there is none and what to do.
Result<std::string> document_in(http::Response response, std::string_view asking);

}  // namespace berth::net
