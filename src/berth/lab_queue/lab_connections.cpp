// As in http_server.cpp, what is handed to a coroutine is a variable, never a temporary.
#include "berth/lab_queue/lab_connections.h"

#include <algorithm>
#include <boost/asio/read_until.hpp>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text_match.h"
#include "berth/net/keep_going.h"

namespace berth::lab_queue {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestWords = 64U << 10U;
constexpr std::size_t kMostOfUser = 1024;
/// Where there is no room for one more connection.
constexpr auto kBetweenTries = 100ms;

void close(const Guest& guest) {
  boost::system::error_code ignored;
  (void)guest->socket.close(ignored);
}

}  // namespace

std::vector<std::string> split_words(std::string_view text, char between) {
  std::vector<std::string> words;
  for (const std::string_view part : parts_at(text, between)) {
    if (!part.empty()) words.emplace_back(part);
  }
  return words;
}

Result<void> StoreGuests::admit_at(const std::string& socket) {
  BERTH_LET(listener_, net::listen_on_socket(loop_, socket));
  net::keep_going(loop_, shared_from_this(), admit);
  return {};
}

net::Task<> StoreGuests::admit(std::shared_ptr<StoreGuests> self) {
  while (true) {
    const Guest guest = std::make_shared<StoreGuest>(self->loop_);
    const auto [error] = co_await self->listener_.acceptor->async_accept(guest->socket, net::kAwait);
    if (error) {
      net::Timer pause(self->loop_);
      pause.expires_after(kBetweenTries);
      co_await pause.async_wait(net::kAwait);
      continue;
    }
    socklen_t size = sizeof(guest->who);
    if (::getsockopt(guest->socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &guest->who, &size) != 0)
      continue;
    const auto of_user = std::ranges::count_if(
        self->guests_, [&](const Guest& each) { return each->who.uid == guest->who.uid; });
    if (static_cast<std::size_t>(of_user) >= kMostOfUser) continue;
    self->guests_.push_back(guest);
    asio::co_spawn(self->loop_, attend(self, guest), asio::detached);
  }
}

net::Task<> StoreGuests::attend(std::shared_ptr<StoreGuests> self, Guest guest) {
  std::string input;
  while (!guest->is_gone) {
    auto buffer = asio::dynamic_buffer(input, kLongestWords);
    const auto [error, size] = co_await asio::async_read_until(guest->socket, buffer, '\n', net::kAwait);
    if (error) break;
    const std::vector<std::string> words = split_words(std::string_view(input).substr(0, size - 1), ' ');
    input.erase(0, size);
    self->hear_(guest, words);
  }
  self->dismiss(guest);
}

void StoreGuests::send(const Guest& guest, std::string_view words) {
  guest->to_send += fmt::format("{}\n", words);
  if (guest->to_send.size() > kLongestWords) return close(guest);
  if (!std::exchange(guest->is_sending, true)) asio::co_spawn(loop_, send_all(guest), asio::detached);
}

net::Task<> StoreGuests::send_all(Guest guest) {
  while (!guest->to_send.empty()) {
    const std::string text = std::exchange(guest->to_send, "");
    const asio::const_buffer buffer = asio::buffer(text);
    const auto [error, size] = co_await asio::async_write(guest->socket, buffer, net::kAwait);
    if (error) break;
  }
  guest->is_sending = false;
  if (guest->is_gone) close(guest);
}

void StoreGuests::dismiss(const Guest& guest) {
  if (std::exchange(guest->is_gone, true)) return;
  std::erase(guests_, guest);
  left_(guest);
  if (!guest->is_sending) close(guest);
}

}  // namespace berth::lab_queue
