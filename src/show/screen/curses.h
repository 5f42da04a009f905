#pragma once

#include <cstdint>
#include <cstdio>
#include <cwchar>

#include "berth/base/error.h"

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

}  // namespace berth::screen
