#include "berth/jobs/model/job_output.h"

#include <doctest/doctest.h>

namespace berth::attached_test {

TEST_CASE("keys and the size of a window arrive as they were sent") {
  const std::string keys("a\0\x03\n", 4);
  CHECK(decode_terminal_packet(encode(TypedKeys{keys})) == TerminalPacket(TypedKeys{keys}));
  CHECK(decode_terminal_packet(encode(WindowSize{24, 80})) == TerminalPacket(WindowSize{24, 80}));
}

TEST_CASE("a packet of another version, or of a terminal without a size, is ignored") {
  for (const char* packet :
       {"", "x", "x1 2", "w", "w24", "w24 80 1", "w0 0", "w24 0", "w-1 80", "w99999999 80"})
    CHECK_MESSAGE(!decode_terminal_packet(packet), packet);
}

TEST_CASE("what is kept of a terminal is bounded, is its end, and begins with a line") {
  RecentlyShown recent;
  std::string all;
  for (int i = 0; i < 10'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\r\n";
    all += line;
    recent.add(line);
    REQUIRE(recent.text().size() <= 16U << 10U);
    REQUIRE(all.ends_with(recent.text()));
    REQUIRE(recent.text().starts_with("line "));
  }
  CHECK(recent.text().size() >= 4U << 10U);
  // One line without an end.
  recent.add(std::string(100'000, 'x'));
  CHECK(recent.text() == std::string(recent.text().size(), 'x'));
  CHECK(recent.text().size() >= 4U << 10U);
}

TEST_CASE("a terminal that reads gets all that is shown, in its order") {
  const RecentlyShown recent;
  ShownTo terminal;
  std::string got;
  for (int i = 0; i < 100'000; ++i) {
    terminal.show(std::to_string(i));
    const std::size_t taken = terminal.next().size() / 2 + 1;
    got += terminal.next().substr(0, taken);
    terminal.sent(taken, recent);
  }
  got += terminal.next();
  std::string all;
  for (int i = 0; i < 100'000; ++i) all += std::to_string(i);
  CHECK(got == all);
}

TEST_CASE("a terminal that does not read misses text, is told so when it reads again, and sees the end") {
  RecentlyShown recent;
  ShownTo terminal;
  const std::string first = "first\r\n";
  const std::string line = std::string(1000, 'x') + "\r\n";
  terminal.show(first);
  for (int i = 0; i < 10'000; ++i) {
    recent.add(line);
    terminal.show(line);
    REQUIRE(terminal.next().size() <= 256U << 10U);
  }
  recent.add("last\r\n");
  terminal.show("last\r\n");
  CHECK(terminal.next().starts_with(first));
  CHECK(terminal.next().find("last") == std::string::npos);
  // In parts: nothing is told in the middle of what waits.
  terminal.sent(1, recent);
  CHECK(terminal.next().starts_with(first.substr(1)));
  terminal.sent(terminal.next().size(), recent);
  CHECK(terminal.next().find("more was shown than this terminal could take") != std::string::npos);
  CHECK(terminal.next().ends_with("last\r\n"));
  terminal.show("next");
  CHECK(terminal.next().ends_with("last\r\nnext"));
}

TEST_CASE("a detach key is one with Ctrl") {
  CHECK(detach_key_from_text("^\\").value() == kDetachKey);
  CHECK(detach_key_from_text("^a").value() == '\x01');
  CHECK(detach_key_from_text("^A").value() == '\x01');
  CHECK(detach_key_from_text("^]").value() == '\x1d');
  for (const char* text : {"", "a", "^", "^1", "^ab", "Ctrl-a", "^~"})
    CHECK_MESSAGE(detach_key_from_text(text).error().code == ErrorCode::usage, text);
  CHECK(key_for_people(kDetachKey) == "Ctrl-\\");
}

TEST_CASE("what a job has changed of a screen is undone, and nothing else is written") {
  const auto undo = [](std::string_view shown, std::size_t piece) {
    ScreenModes modes;
    for (; !shown.empty(); shown.remove_prefix(std::min(piece, shown.size())))
      modes.watch(shown.substr(0, piece));
    return modes.undo();
  };
  for (const std::size_t piece : {1U, 3U, 100U}) {
    CHECK(undo("plain \x1b[31mred\x1b[0m \x1b[2J\x1b[10;20H", piece).empty());
    CHECK(undo("\x1b[?1049h\x1b[?25l\x1b[?1000;1006h", piece) ==
          "\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?1049l");
    CHECK(undo("\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l", piece).empty());
    CHECK(undo("\x1b[?7777h\x1b[?h\x1b[?;h\x1b[?99999999999999999999h\x1b[?25x", piece).empty());
    CHECK(undo("\x1b[?1h", piece) == "\x1b[0m\x1b[?1l");
  }
}

}  // namespace berth::attached_test
