#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "berth/base/error.h"
#include "berth/lab_queue/model/lab_agent_step.h"
#include "berth/net/listener.h"

namespace berth::lab_queue {

/// The connections of those who wait, or look, on this machine. The kernel says who each one is. A
/// request keeps its entry in the lab queue as long as its connection lives. All of it happens on
/// the loop.
class LabConnections : public std::enable_shared_from_this<LabConnections> {
 public:
  static constexpr std::size_t kMostOfUser = 1024;

  /// `tell`: who has come, each line that they say, and that they have ended.
  LabConnections(asio::io_context& loop, std::function<void(const lab_agent::Event&)> tell,
                 std::size_t most_of_user = kMostOfUser)
      : loop_(loop), tell_(std::move(tell)), most_of_user_(most_of_user) {}

  /// Lets them in, for as long as the loop runs. To be called once. Error: `failure` if the socket
  /// cannot be made.
  Result<void> admit_at(const std::string& socket);

  bool has(lab_agent::ClientId id) const { return find(id) != nullptr; }
  /// One line, without its end. Whoever does not read loses the connection.
  void send(lab_agent::ClientId id, std::string_view words);
  /// Ends the connection, when what was sent has gone. Until then it counts as one of its user's.
  void dismiss(lab_agent::ClientId id);

 private:
  struct OpenConnection {
    explicit OpenConnection(asio::io_context& loop) : socket(loop) {}

    asio::basic_stream_socket<net::Protocol, net::Executor> socket;
    lab_agent::ClientId id = 0;
    ucred who{};
    std::string to_send{};
    enum class Stage {
      idle,
      sending,
      leaving
    } stage = Stage::idle;  ///< leaving: when what was sent has gone
  };
  using Connection = std::shared_ptr<OpenConnection>;

  /// nullptr: it is not there, or was sent away.
  Connection find(lab_agent::ClientId id) const;
  void take_in(const Connection& connection);
  void has_sent(const Connection& connection, bool memory_ended);
  void drop(const Connection& connection);

  static net::Coroutine<> admit(std::shared_ptr<LabConnections> self);
  static net::Coroutine<> attend(std::shared_ptr<LabConnections> self, Connection connection);
  static net::Coroutine<> send_all(Connection connection);
  static void close(const Connection& connection);

  asio::io_context& loop_;
  std::function<void(const lab_agent::Event&)> tell_;
  std::size_t most_of_user_;
  net::Listener listener_;
  lab_agent::ClientId last_ = 0;
  std::map<lab_agent::ClientId, Connection> connections_{};  ///< all whose sockets are open
};

}  // namespace berth::lab_queue
