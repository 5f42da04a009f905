#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace berth::http {

/// The clients with an open connection. If there is no room for a new one, the client that has been
/// idle longest must go. So nobody can lock the others out by doing nothing.
class Connections {
 public:
  using Id = std::uint64_t;  // never 0

  struct Admission {
    Id id = 0;                    ///< 0: there is no room
    std::optional<Id> evicted{};  ///< the client whose connection is to be closed for it; not counted any
                                  ///< more
  };

  /// `most_of_address`: of one address.
  void allow(std::size_t most, std::size_t most_of_address);
  Admission admit(const std::string& address);
  /// From now on this client is idle: it has asked for nothing.
  void waits(Id id);
  void is_served(Id id);
  void leaves(Id id);

  std::size_t count() const { return connections_.size(); }
  bool is_full() const { return connections_.size() >= most_; }

 private:
  using Order = std::map<std::uint64_t, Id>;  // since when
  struct Address {
    std::size_t count = 0;
    Order waiting;
  };
  struct Connection {
    std::map<std::string, Address>::iterator address;
    std::uint64_t since = 0;  // 0: it does not wait
  };

  std::size_t most_ = 0;
  std::size_t most_of_address_ = 0;
  std::uint64_t last_ = 0;
  std::map<Id, Connection> connections_;
  std::map<std::string, Address> addresses_;
  Order waiting_;
};

}  // namespace berth::http
