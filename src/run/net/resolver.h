#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "berth/net/listener.h"

namespace berth::net {

/// Looks names up. The system's own call can hang for any time and cannot be ended. So each name
/// has a thread while it is looked up, and no caller waits longer than it said.
class Resolver {
 public:
  using Endpoints = std::vector<Protocol::endpoint>;
  using Time = std::chrono::steady_clock::time_point;

  explicit Resolver(asio::io_context& loop);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  /// The addresses of `host`; never empty. If the name service does not answer in time: the last
  /// known addresses. Error: `failure`.
  Task<Result<Endpoints>> find(std::string host, std::uint16_t port, Time until);

 private:
  struct Name {
    Endpoints endpoints;
    std::string error;
    Time looked_up{};
    bool under_way = false;
    std::vector<std::shared_ptr<Timer>> waiting;
  };
  /// Outlives this object if a thread does not return.
  struct Mailbox;

  void look_up(const std::string& host);
  void take(const std::string& host, Endpoints endpoints, std::string error);

  asio::io_context& loop_;
  std::shared_ptr<Mailbox> mailbox_;
  std::map<std::string, Name> names_;
  std::deque<std::string> waiting_;
  std::size_t under_way_ = 0;
};

}  // namespace berth::net
