#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/screen/model/top.h"

namespace berth::screen {

/// The terminal of this process as a screen: rows go out, keys come in. While it lives, Ctrl-Z
/// gives the terminal back until the process goes on. A crash of the program gives it back too.
/// Only one object at a time.
class Screen {
 public:
  /// Takes the terminal over. Error: `usage` if input or output is no terminal, or one that cannot
  /// be painted; `failure` without ncurses.
  static Result<Screen> open(bool colours);

  Screen(Screen&&) noexcept;
  Screen& operator=(Screen&&) noexcept;
  ~Screen();  ///< puts the terminal back as it was before

  view::ScreenSize size() const;
  void paint(const std::vector<view::ScreenRow>& rows);
  /// The next key that was typed. nullopt: none was typed; this does not wait.
  std::optional<view::Key> key();
  /// Asks the terminal to put this on its clipboard (OSC 52). Many terminals do so, some ask first,
  /// some never do.
  void offer_to_clipboard(std::string_view text);

 private:
  class Body;
  explicit Screen(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::screen
