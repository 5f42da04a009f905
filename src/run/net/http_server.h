#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "berth/base/error.h"
#include "berth/http/answer.h"
#include "berth/http/settings.h"

namespace berth::net {

/// Answers HTTP/1.1 from what was published last. It has one thread and one event loop; a client
/// costs a few kilobytes.
class HttpServer {
 public:
  explicit HttpServer(http::Site site);
  ~HttpServer();

  /// From now on listens only where the settings say. Reads token and certificates. Error: nothing
  /// has changed; the message names the file or address that is wrong. REQUIRES: check(settings).
  Result<void> apply(const http::Settings& settings);
  /// "http://127.0.0.1:8420": one URL for each address, with the ports that the system chose.
  std::vector<std::string> addresses() const;

  /// The event loop, for other work of this thread.
  boost::asio::io_context& loop();

  /// From any thread.
  void publish(std::shared_ptr<const http::Published> published);

  /// Serves until SIGTERM or SIGINT, then lets the answers under way end. SIGHUP calls `reload`.
  void run(const std::function<void()>& reload);

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace berth::net
