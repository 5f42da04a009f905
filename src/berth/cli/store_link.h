#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/sys/descriptor.h"

namespace berth::cli {

/// The connection to the agent of this machine that keeps the line of the lab (docs/store-protocol.md). It is
/// the request's place there, and ends with this process. Nothing here blocks but the beginning.
class StoreLink {
 public:
  /// Error: `failure`, where no agent is there, with what to do.
  static Result<StoreLink> open(const std::string& socket);

  int descriptor() const { return socket_.get(); }
  /// What it waits for.
  short wants() const;
  /// One line, without its end. Reads nothing: what was read here nobody would be woken for.
  void send(std::string_view words);
  /// Reads and writes what can be without waiting.
  void attend();
  /// The next line of the agent, as words.
  std::optional<std::vector<std::string>> next();
  /// The agent has ended, and with it the connection.
  bool has_ended() const { return ended_; }

 private:
  explicit StoreLink(sys::Descriptor socket) : socket_(std::move(socket)) {}
  void write_some();
  void read_some();

  sys::Descriptor socket_;
  std::string to_send_, come_;
  bool ended_ = false;
};

}  // namespace berth::cli
