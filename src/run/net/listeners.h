#pragma once

#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "berth/net/listener.h"

namespace berth::net {

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

}  // namespace berth::net
