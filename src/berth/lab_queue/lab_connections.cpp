// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/lab_connections.h"

#include <algorithm>
#include <boost/asio/read_until.hpp>
#include <utility>

#include <fmt/format.h>

#include "berth/net/keep_going.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestWords = 64U << 10U;
constexpr std::size_t kMostOfUser = 1024;
/// Where there is no room for one more connection.
constexpr auto kBetweenTries = 100ms;

}  // namespace

void LabConnections::close(const Connection& connection) {
  boost::system::error_code ignored;
  (void)connection->socket.close(ignored);
}

Result<void> LabConnections::admit_at(const std::string& socket) {
  BERTH_LET(listener_, net::listen_on_socket(loop_, socket));
  net::keep_going(loop_, shared_from_this(), admit);
  return {};
}

net::Task<> LabConnections::admit(std::shared_ptr<LabConnections> self) {
  while (true) {
    const Connection connection = std::make_shared<Held>(self->loop_);
    const auto [error] = co_await self->listener_.acceptor->async_accept(connection->socket, net::kAwait);
    if (error) {
      net::Timer pause(self->loop_);
      pause.expires_after(kBetweenTries);
      co_await pause.async_wait(net::kAwait);
      continue;
    }
    socklen_t size = sizeof(connection->who);
    if (::getsockopt(connection->socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &connection->who, &size) !=
        0)
      continue;
    const auto of_user = std::ranges::count_if(
        self->connections_, [&](const auto& each) { return each.second->who.uid == connection->who.uid; });
    if (static_cast<std::size_t>(of_user) >= kMostOfUser) continue;
    connection->id = ++self->last_;
    self->connections_.emplace(connection->id, connection);
    self->tell_(lab_agent::Came{connection->id, connection->who.pid, connection->who.uid});
    asio::co_spawn(self->loop_, attend(self, connection), asio::detached);
  }
}

net::Task<> LabConnections::attend(std::shared_ptr<LabConnections> self, Connection connection) {
  std::string input;
  while (!connection->is_gone) {
    auto buffer = asio::dynamic_buffer(input, kLongestWords);
    const auto [error, size] = co_await asio::async_read_until(connection->socket, buffer, '\n', net::kAwait);
    if (error) break;
    const lab_agent::Said said{connection->id, input.substr(0, size - 1)};
    input.erase(0, size);
    self->tell_(said);
  }
  self->dismiss(connection->id);
}

void LabConnections::send(lab_agent::ClientId id, std::string_view words) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& connection = found->second;
  connection->to_send += fmt::format("{}\n", words);
  if (connection->to_send.size() > kLongestWords) return close(connection);
  if (!std::exchange(connection->is_sending, true))
    asio::co_spawn(loop_, send_all(connection), asio::detached);
}

net::Task<> LabConnections::send_all(Connection connection) {
  while (!connection->to_send.empty()) {
    const std::string text = std::exchange(connection->to_send, "");
    const asio::const_buffer buffer = asio::buffer(text);
    const auto [error, size] = co_await asio::async_write(connection->socket, buffer, net::kAwait);
    if (error) break;
  }
  connection->is_sending = false;
  if (connection->is_gone) close(connection);
}

void LabConnections::dismiss(lab_agent::ClientId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection connection = found->second;
  connection->is_gone = true;
  connections_.erase(found);
  tell_(lab_agent::Ended{id});
  if (!connection->is_sending) close(connection);
}

}  // namespace berth::lab_queue
