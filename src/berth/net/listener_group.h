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

/// How many connections there may be. Some descriptors are kept for the looks at the machine, so that clients
/// cannot stop them, and some for the Unix socket, so that the network cannot use them up.
void allow_guests(http::Guests& network, http::Guests& local);

/// Clients of the network, or of the Unix socket.
struct Side {
  http::Door door{};
  http::Guests guests{};
  std::map<http::Guests::Id, PlainStream*> streams{};
  std::uint64_t admission = 0;  // increases when the rule who may ask has changed
  std::chrono::steady_clock::time_point warned{};
};

/// The place of a connection.
class Seat {
 public:
  Seat(Side& side, http::Guests::Id id, PlainStream& stream) : side_(side), id_(id) {
    side_.streams.emplace(id, &stream);
    side_.guests.waits(id);
  }
  ~Seat() {
    side_.guests.leaves(id_);
    side_.streams.erase(id_);
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  void waits() const { side_.guests.waits(id_); }
  void is_served() const { side_.guests.is_served(id_); }

 private:
  Side& side_;
  http::Guests::Id id_;
};

}  // namespace berth::net
