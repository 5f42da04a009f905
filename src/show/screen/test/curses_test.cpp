#define NCURSES_NOMACROS
#include <curses.h>

#include <doctest/doctest.h>

#include <type_traits>

#include "berth/screen/screen.h"

namespace it = berth::screen;

TEST_CASE("what is written down of ncurses is what its own header says") {
  CHECK(it::kCursesError == ERR);
  CHECK(it::kKeyCode == KEY_CODE_YES);
  CHECK(it::kKeyDown == KEY_DOWN);
  CHECK(it::kKeyUp == KEY_UP);
  CHECK(it::kKeyHome == KEY_HOME);
  CHECK(it::kKeyEnd == KEY_END);
  CHECK(it::kKeyBackspace == KEY_BACKSPACE);
  CHECK(it::kKeyNextPage == KEY_NPAGE);
  CHECK(it::kKeyPreviousPage == KEY_PPAGE);
  CHECK(it::kKeyEnter == KEY_ENTER);
  CHECK(it::kReverse == A_REVERSE);
  CHECK(it::kDim == A_DIM);
  CHECK(it::kBold == A_BOLD);
  CHECK(std::is_same_v<it::CursesAttributes, attr_t>);
}

TEST_CASE("the library of this machine has all that is used") {
  const auto curses = it::Curses::load();
  REQUIRE_MESSAGE(curses, curses.error().message);
}
