#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "berth/core/error.h"
#include "berth/render/top.h"

namespace berth::screen {

/// The terminal of this process as a screen: rows go out, keys come in. While it lives, Ctrl-Z gives the
/// terminal back until the process goes on, and so does an end by a fault of the program. One at a time.
class Screen {
 public:
  /// Takes the terminal over. Error: `usage`, where input or output is none, or none that can be painted;
  /// `failure`, without ncurses.
  static Result<Screen> open(bool colours);

  Screen(Screen&&) noexcept;
  Screen& operator=(Screen&&) noexcept;
  ~Screen();  ///< as it was before

  render::ScreenSize size() const;
  void paint(const std::vector<render::ScreenRow>& rows);
  /// The next key that was typed, or nullopt: it does not wait.
  std::optional<render::Key> key();
  /// Asks the terminal to put this on its clipboard (OSC 52). Many do, some ask first, some never do.
  void offer_to_clipboard(std::string_view text);

 private:
  class Body;
  explicit Screen(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::screen
