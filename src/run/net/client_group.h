#pragma once

#include <boost/beast/core/basic_stream.hpp>
#include <chrono>
#include <cstdint>
#include <map>

#include "berth/http/answer.h"
#include "berth/http/connections.h"
#include "berth/net/listener.h"

namespace berth::net {

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

}  // namespace berth::net
