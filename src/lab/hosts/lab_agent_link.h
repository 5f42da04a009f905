#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/machines/host.h"
#include "berth/sys/file.h"

namespace berth::hosts {

/// A line of the agent: its first word, and the rest, which may have spaces.
struct AgentLine {
  std::string word, rest;
};

/// The connection to the agent of this machine that keeps the lab queue (docs/store-protocol.md).
/// The request has its entry there as long as this connection lives, and the connection ends with
/// this process. Only `open` blocks.
class LabAgentLink {
 public:
  /// An agent that has too many connections to take is waited for as long as `patience`. Error:
  /// `failure` if no agent is there, with what to do.
  static Result<LabAgentLink> open(const std::string& socket,
                                   std::chrono::seconds patience = std::chrono::seconds(10));

  int descriptor() const { return socket_.get(); }
  /// The events that it waits for, as for poll.
  short wants() const;
  /// Sends one line; `words` are without the line end. Does not read, because nobody would be woken
  /// for what is read here.
  void send(std::string_view words);
  /// Reads and writes what it can without waiting.
  void attend();
  /// The next line of the agent.
  std::optional<AgentLine> next();
  /// The agent has ended, and with it the connection.
  bool has_ended() const { return ended_; }

 private:
  explicit LabAgentLink(sys::Descriptor socket) : socket_(std::move(socket)) {}
  void write_some();
  void read_some();

  sys::Descriptor socket_;
  std::string to_send_, come_;
  bool ended_ = false;
};

/// The lines that the agent answers to this question, up to `end`. An agent that does not know the
/// question answers the one line `no`. Waits for 10 s at most. Error: `failure`, with what to do.
Result<std::vector<AgentLine>> ask_agent(const std::string& socket, std::string_view question);

/// The lab queue, as the agent of this machine knows it. Nothing, if this machine has no store or
/// its agent is too old to tell it. Error: `failure` if the agent or the store does not answer, and
/// as of lab_store_socket; what the hosts tell of their queues holds all the same.
Result<LabOrder> order_of_lab();

}  // namespace berth::hosts
