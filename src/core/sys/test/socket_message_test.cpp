#include "berth/sys/socket.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace berth::sys::socket_message_test {
namespace {

struct Ends {
  Descriptor here;
  Descriptor there;

  Ends() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    here = Descriptor(ends[0]);
    there = Descriptor(ends[1]);
  }
};

TEST_CASE("text and descriptors come together, and the copies are close-on-exec") {
  const Ends ends;
  const std::array<int, 2> sent{ends.here.get(), ends.there.get()};
  REQUIRE(send_message(ends.here.get(), "a text", sent));
  CHECK_FALSE(is_all_read(ends.here.get()));
  const auto received = receive_message(ends.there.get());
  REQUIRE(received);
  CHECK(received->text == "a text");
  CHECK_FALSE(received->ended);
  REQUIRE(received->descriptors.size() == 2);
  for (const Descriptor& each : received->descriptors)
    CHECK((::fcntl(each.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(is_all_read(ends.here.get()));
}

TEST_CASE("nothing to receive is not the end") {
  Ends ends;
  CHECK_FALSE(receive_message(ends.there.get())->ended);
  REQUIRE(send_message(ends.here.get(), "last words"));
  ends.here.close();
  const auto last = receive_message(ends.there.get());
  CHECK(last->text == "last words");
  CHECK(last->ended);
}

TEST_CASE("a text that is longer than the socket holds arrives whole") {
  Ends ends;
  const std::string text(4 << 20, 'x');
  std::string heard;
  std::thread listener([&] {
    for (bool ended = false; !ended;) {
      auto received = receive_message(ends.there.get());
      heard += received->text;
      ended = received->ended;
    }
  });
  CHECK(send_message(ends.here.get(), text));
  ends.here.close();
  listener.join();
  CHECK(heard == text);
}

TEST_CASE("telling somebody who has gone is an error and no signal") {
  Ends ends;
  ends.there.close();
  CHECK_FALSE(send_message(ends.here.get(), "hello?"));
}

}  // namespace
}  // namespace berth::sys::socket_message_test
