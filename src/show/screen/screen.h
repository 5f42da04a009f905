#pragma once

#include <cstdint>
#include <cstdio>
#include <cwchar>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/screen/model/top.h"

// The part of ncurses 6, with wide characters, that is used. The library is loaded when `berth top`
// starts, so that other commands need not load or contain it. A test compares this with the
// library's own header.
namespace berth::screen {

struct CursesWindow;
struct CursesScreen;
using CursesAttributes = std::uint32_t;

inline constexpr int kCursesError = -1;
inline constexpr int kKeyCode = 0400;  ///< get_wch returns this for a key that is no character
inline constexpr wint_t kKeyDown = 0402;
inline constexpr wint_t kKeyUp = 0403;
inline constexpr wint_t kKeyHome = 0406;
inline constexpr wint_t kKeyBackspace = 0407;
inline constexpr wint_t kKeyNextPage = 0522;
inline constexpr wint_t kKeyPreviousPage = 0523;
inline constexpr wint_t kKeyEnter = 0527;
inline constexpr wint_t kKeyEnd = 0550;
inline constexpr CursesAttributes kReverse = 1U << 18U;
inline constexpr CursesAttributes kDim = 1U << 20U;
inline constexpr CursesAttributes kBold = 1U << 21U;

/// The functions, by the library's names.
struct Curses {
  CursesScreen* (*newterm)(const char* terminal, std::FILE* out, std::FILE* in);
  int (*endwin)();
  int (*cbreak)();
  int (*noecho)();
  int (*nonl)();
  int (*keypad)(CursesWindow*, bool);
  int (*nodelay)(CursesWindow*, bool);
  int (*set_escdelay)(int milliseconds);
  int (*wget_wch)(CursesWindow*, wint_t*);
  int (*mvwaddnwstr)(CursesWindow*, int line, int column, const wchar_t*, int count);
  int (*wattr_set)(CursesWindow*, CursesAttributes, short pair, void*);
  bool (*has_colors)();
  int (*start_color)();
  int (*use_default_colors)();
  int (*init_pair)(short pair, short foreground, short background);
  int (*werase)(CursesWindow*);
  int (*wnoutrefresh)(CursesWindow*);
  int (*doupdate)();
  int (*curs_set)(int);
  int (*getmaxx)(const CursesWindow*);
  int (*getmaxy)(const CursesWindow*);
  char* (*tigetstr)(const char* capability);
  CursesWindow** stdscr;

  /// Error: `failure`, with what to do instead.
  static Result<Curses> load();
};

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
