// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/lab_connections.h"

#include <algorithm>
#include <boost/asio/read_until.hpp>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "berth/net/listener.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestWords = 64U << 10U;
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

net::Coroutine<> LabConnections::admit(std::shared_ptr<LabConnections> self) {
  while (true) {
    const Connection connection = std::make_shared<OpenConnection>(self->loop_);
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
    if (static_cast<std::size_t>(of_user) >= self->most_of_user_) continue;
    connection->id = ++self->last_;
    self->take_in(connection);
  }
}

void LabConnections::take_in(const Connection& connection) {
  const auto self = shared_from_this();
  const lab_agent::ClientId id = connection->id;
  try {
    connections_.emplace(id, connection);
    tell_(lab_agent::Came{id, connection->who.pid, connection->who.uid});
    // However it ends, also for want of memory: nobody listens to the connection then.
    asio::co_spawn(loop_, attend(self, connection),
                   [self, id](const std::exception_ptr&) { self->dismiss(id); });
  } catch (const std::bad_alloc&) {
    dismiss(id);
  }
}

net::Coroutine<> LabConnections::attend(std::shared_ptr<LabConnections> self, Connection connection) {
  std::string input;
  while (self->has(connection->id)) {
    auto buffer = asio::dynamic_buffer(input, kLongestWords);
    const auto [error, size] = co_await asio::async_read_until(connection->socket, buffer, '\n', net::kAwait);
    if (error) break;
    const lab_agent::Said said{connection->id, input.substr(0, size - 1)};
    input.erase(0, size);
    self->tell_(said);
  }
}

LabConnections::Connection LabConnections::find(lab_agent::ClientId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() || found->second->stage == OpenConnection::Stage::leaving
             ? nullptr
             : found->second;
}

void LabConnections::send(lab_agent::ClientId id, std::string_view words) {
  const Connection connection = find(id);
  if (!connection) return;
  connection->to_send += fmt::format("{}\n", words);
  if (connection->to_send.size() > kLongestWords) return close(connection);
  if (std::exchange(connection->stage, OpenConnection::Stage::sending) == OpenConnection::Stage::sending)
    return;
  asio::co_spawn(loop_, send_all(connection),
                 [self = shared_from_this(), connection](const std::exception_ptr& fault) {
                   self->has_sent(connection, fault != nullptr);
                 });
}

net::Coroutine<> LabConnections::send_all(Connection connection) {
  while (!connection->to_send.empty()) {
    const std::string text = std::exchange(connection->to_send, "");
    const asio::const_buffer buffer = asio::buffer(text);
    const auto [error, size] = co_await asio::async_write(connection->socket, buffer, net::kAwait);
    if (error) break;
  }
}

void LabConnections::has_sent(const Connection& connection, bool memory_ended) {
  // A client that has missed words must not wait for them.
  if (memory_ended) close(connection);
  if (std::exchange(connection->stage, OpenConnection::Stage::idle) == OpenConnection::Stage::leaving)
    drop(connection);
}

void LabConnections::dismiss(lab_agent::ClientId id) {
  const Connection connection = find(id);
  if (!connection) return;
  if (connection->stage == OpenConnection::Stage::sending)
    connection->stage = OpenConnection::Stage::leaving;
  else
    drop(connection);
  tell_(lab_agent::Ended{id});
}

void LabConnections::drop(const Connection& connection) {
  close(connection);
  connections_.erase(connection->id);
}

}  // namespace berth::lab_queue
