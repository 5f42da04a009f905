#include "berth/lab_queue/lab_connections.h"

#include <doctest/doctest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <variant>
#include <vector>

#include "berth/sys/file.h"

namespace berth::lab_queue::lab_connections_test {
namespace {

using namespace std::chrono_literals;
using lab_agent::ClientId;

constexpr std::size_t kMost = 2;

class Desk {
 public:
  Desk() {
    REQUIRE(::mkdtemp(folder_.data()) != nullptr);
    REQUIRE(connections->admit_at(path()).has_value());
  }
  ~Desk() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  sys::Descriptor connects() const {
    sys::Descriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
    REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    return client;
  }
  bool eventually(const std::function<bool()>& holds) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!holds() && std::chrono::steady_clock::now() < until) loop_.run_for(1ms);
    return holds();
  }
  /// Does all that can be done now.
  void goes_on() { loop_.poll(); }

  template <class T>
  std::vector<ClientId> heard() const {
    std::vector<ClientId> ids;
    for (const lab_agent::Event& what : heard_) {
      if (const auto* each = std::get_if<T>(&what)) ids.push_back(each->client);
    }
    return ids;
  }

 private:
  std::string path() const { return folder_ + "/s"; }

  std::string folder_ = "/tmp/berth-test-XXXXXX";
  asio::io_context loop_;
  std::vector<lab_agent::Event> heard_;

 public:
  std::function<void(const lab_agent::Event&)> also = [](const lab_agent::Event&) {};
  const std::shared_ptr<LabConnections> connections = std::make_shared<LabConnections>(
      loop_,
      [this](const lab_agent::Event& what) {
        heard_.push_back(what);
        also(what);
      },
      kMost);
};

std::size_t unread(const sys::Descriptor& client) {
  int bytes = 0;
  REQUIRE(::ioctl(client.get(), FIONREAD, &bytes) == 0);
  return static_cast<std::size_t>(bytes);
}

/// By the other side, also where that has not read all.
bool is_closed(const sys::Descriptor& client) {
  char letter = 0;
  const ssize_t size = ::recv(client.get(), &letter, 1, MSG_PEEK);
  return size == 0 || (size < 0 && errno == ECONNRESET);
}

/// Until no more fits between the two, since the client reads nothing.
void fill(Desk& desk, ClientId id, const sys::Descriptor& client) {
  const std::string line(50'000, 'x');
  std::size_t sent = 0;
  do {
    desk.connections->send(id, line);
    desk.goes_on();
    sent += line.size() + 1;
  } while (unread(client) == sent);
}

TEST_CASE("a client that is sent away and reads nothing counts until its connection is closed") {
  Desk desk;
  std::vector<sys::Descriptor> clients;
  for (ClientId id = 1; id <= kMost; ++id) {
    clients.push_back(desk.connects());
    REQUIRE(desk.eventually([&] { return desk.connections->has(id); }));
    fill(desk, id, clients.back());
    desk.connections->dismiss(id);
    CHECK_FALSE(desk.connections->has(id));
  }
  CHECK(desk.heard<lab_agent::Ended>() == std::vector<ClientId>{1, 2});
  const sys::Descriptor one_more = desk.connects();
  CHECK(desk.eventually([&] { return is_closed(one_more) || desk.heard<lab_agent::Came>().size() > kMost; }));
  CHECK(desk.heard<lab_agent::Came>() == std::vector<ClientId>{1, 2});
  clients[0].close();
  desk.goes_on();
  const sys::Descriptor next = desk.connects();
  CHECK(desk.eventually([&] { return desk.connections->has(3); }));
}

TEST_CASE("a client that is sent away gets what was said to it, and then the end") {
  Desk desk;
  const sys::Descriptor client = desk.connects();
  REQUIRE(desk.eventually([&] { return desk.connections->has(1); }));
  desk.connections->send(1, "no");
  desk.connections->dismiss(1);
  desk.connections->send(1, "yes");
  std::string read;
  CHECK(desk.eventually([&] {
    std::array<char, 64> piece{};
    const ssize_t size = ::read(client.get(), piece.data(), piece.size());
    if (size > 0) read.append(piece.data(), static_cast<std::size_t>(size));
    return size == 0;
  }));
  CHECK(read == "no\n");
  CHECK(desk.heard<lab_agent::Ended>() == std::vector<ClientId>{1});
}

TEST_CASE(
    "where memory ends in what a client says, or in its coming, its connection ends, and that is heard") {
  Desk desk;
  bool in_its_coming = false;
  SUBCASE("says") {}
  SUBCASE("comes") {
    in_its_coming = true;
  }
  desk.also = [&](const lab_agent::Event& what) {
    const bool came = std::holds_alternative<lab_agent::Came>(what);
    if (in_its_coming ? came : std::holds_alternative<lab_agent::Said>(what)) throw std::bad_alloc();
  };
  const sys::Descriptor client = desk.connects();
  REQUIRE(::write(client.get(), "line 0\n", 7) == 7);
  CHECK(desk.eventually([&] { return !desk.heard<lab_agent::Ended>().empty(); }));
  CHECK(desk.heard<lab_agent::Ended>() == std::vector<ClientId>{1});
  CHECK_FALSE(desk.connections->has(1));
  CHECK(is_closed(client));
}

}  // namespace
}  // namespace berth::lab_queue::lab_connections_test
