#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/lab_queue/model/lab_tickets.h"
#include "berth/net/listener.h"
#include "berth/verdict/limits.h"

namespace berth::lab_queue {

/// A connection from this machine. A request keeps its place in the lab queue as long as its
/// connection lives.
struct LabConnection {
  using Instant = std::chrono::steady_clock::time_point;
  template <class T>
  using ByHost = std::map<std::string, T, std::less<>>;

  explicit LabConnection(asio::io_context& loop) : socket(loop) {}

  asio::basic_stream_socket<net::Protocol, net::Executor> socket;
  ucred who{};
  LabTicket wanted{};                ///< its place, once it asked for one; the order is the store's
  std::vector<std::string> asked{};  ///< the hosts that it has named and not left
  std::string start_on{};
  std::string told_yes{};                           ///< the host on which it starts or runs; "": none yet
  std::set<std::string, std::less<>> given_back{};  ///< hosts that it has let go: a start there is none
  ByHost<Instant> opened{};                         ///< since when it may join them
  std::set<std::string, std::less<>> answered{};    ///< of those, the hosts that it has said to hear of
  ByHost<Instant> closing{};                        ///< since when it is to let them go
  std::optional<Asker> asker{};  ///< whose limits apply; none: nobody asks, or it is not known yet
  bool knows_limit = false;      ///< its ticket says what its user may have of the lab
  std::string told_limit{};
  std::optional<std::size_t> told_position{};
  bool told_silent = false;
  bool wants_status = false;
  std::optional<std::size_t> wants_queue{};  ///< from this place of it on
  bool is_gone = false;
  std::string to_send{};
  bool is_sending = false;

  bool waits() const { return !wanted.id.empty() && !is_gone; }
  bool only_looks() const { return wants_status || wants_queue.has_value(); }
  LabStart start_at(const std::string& host) const {
    return {host, who.pid, wanted.uid, wanted.gpus, wanted.fair_number};
  }
};
using Connection = std::shared_ptr<LabConnection>;

/// The connections of those who wait, or look, on this machine. The kernel says who each one is.
/// All of it happens on the loop.
class LabConnections : public std::enable_shared_from_this<LabConnections> {
 public:
  /// `hear`: one line of a connection, as words. `left`: the connection is not among all() any
  /// more.
  LabConnections(asio::io_context& loop,
                 std::function<void(const Connection&, const std::vector<std::string>&)> hear,
                 std::function<void(const Connection&)> left)
      : loop_(loop), hear_(std::move(hear)), left_(std::move(left)) {}

  /// Lets them in, for as long as the loop runs. To be called once. Error: `failure` if the socket
  /// cannot be made.
  Result<void> admit_at(const std::string& socket);

  const std::vector<Connection>& all() const { return connections_; }
  /// One line, without its end. Whoever does not read loses the connection.
  void send(const Connection& connection, std::string_view words);
  /// Ends the connection, when what was sent has gone.
  void dismiss(const Connection& connection);

 private:
  static net::Task<> admit(std::shared_ptr<LabConnections> self);
  static net::Task<> attend(std::shared_ptr<LabConnections> self, Connection connection);
  static net::Task<> send_all(Connection connection);

  asio::io_context& loop_;
  std::function<void(const Connection&, const std::vector<std::string>&)> hear_;
  std::function<void(const Connection&)> left_;
  net::Listener listener_;
  std::vector<Connection> connections_;
};

/// The words of a line, or the names of a list.
std::vector<std::string> split_words(std::string_view text, char between);

}  // namespace berth::lab_queue
