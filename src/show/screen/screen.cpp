#include "berth/screen/screen.h"

#include <langinfo.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <string>

#include "berth/base/text.h"
#include "berth/sys/process.h"
#include "berth/view/text.h"

namespace berth::screen {
namespace {

constexpr const char* kLibrary = "libncursesw.so.6";

template <class T>
bool find_symbol(const sys::DynamicLibrary& library, const char* name, T& found) {
  found = reinterpret_cast<T>(library.symbol(name));
  return found != nullptr;
}

std::unexpected<Error> lacking(const std::string& reason) {
  return fail(
      ErrorCode::failure,
      "berth top needs ncurses 6 (Debian and Ubuntu: libncursesw6; Fedora and RHEL: ncurses-libs), and " +
          reason + "; `berth list --watch` needs nothing");
}

}  // namespace

Result<Curses> Curses::load() {
  const auto library = sys::DynamicLibrary::open(kLibrary);
  if (!library) return lacking(library.error().message);
  Curses it{};
  const auto find = [&](const char* name, auto& found) { return find_symbol(*library, name, found); };
  const bool whole =
      find("newterm", it.newterm) && find("endwin", it.endwin) && find("cbreak", it.cbreak) &&
      find("noecho", it.noecho) && find("nonl", it.nonl) && find("keypad", it.keypad) &&
      find("nodelay", it.nodelay) && find("set_escdelay", it.set_escdelay) && find("wget_wch", it.wget_wch) &&
      find("mvwaddnwstr", it.mvwaddnwstr) && find("wattr_set", it.wattr_set) &&
      find("has_colors", it.has_colors) && find("start_color", it.start_color) &&
      find("use_default_colors", it.use_default_colors) && find("init_pair", it.init_pair) &&
      find("werase", it.werase) && find("wnoutrefresh", it.wnoutrefresh) && find("doupdate", it.doupdate) &&
      find("curs_set", it.curs_set) && find("getmaxx", it.getmaxx) && find("getmaxy", it.getmaxy) &&
      find("tigetstr", it.tigetstr) && find("stdscr", it.stdscr);
  if (!whole) return lacking(std::string(kLibrary) + " lacks some function");
  return it;
}

namespace {

using view::Key;
using view::KeyName;
using view::Tone;

// Half an escape sequence is completed within this time, also over a slow connection.
constexpr int kEscapeDelayMs = 50;

/// Gives the terminal back where nothing else may be called any more.
struct LastResort {
  bool is_needed = false;
  termios modes{};
  std::array<char, 256> sequences{};
  std::size_t length = 0;
};
LastResort last_resort;

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

extern "C" void give_terminal_back(int signal) {
  if (last_resort.is_needed) {
    [[maybe_unused]] const auto written =
        ::write(STDOUT_FILENO, last_resort.sequences.data(), last_resort.length);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &last_resort.modes);
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Tones as ncurses has them. Colours are of the terminal's own sixteen, on its own background, so
/// that they can be read on light and dark.
struct Look {
  CursesAttributes attributes;
  short pair;
};
constexpr short kGreen = 2;
constexpr short kYellow = 3;
constexpr short kMagenta = 5;
constexpr short kRed = 1;
constexpr short kCyan = 6;  // the terminal's own blue can hardly be read on black

Look look_of(Tone tone, bool colours) {
  switch (tone) {
    case Tone::plain:
      return {0, 0};
    case Tone::good:
      return {0, colours ? kGreen : short{0}};
    case Tone::waiting:
      return {0, colours ? kYellow : short{0}};
    case Tone::foreign:
      return {0, colours ? kMagenta : short{0}};
    case Tone::bad:
      return {colours ? 0 : kBold, colours ? kRed : short{0}};
    case Tone::busy:
      return {0, colours ? kCyan : short{0}};
    case Tone::faint:
      return {kDim, 0};
    case Tone::strong:
      return {kBold, 0};
  }
  return {0, 0};
}

/// The text as ncurses wants it. It has passed through printable() before it was cut; once more, so
/// that nothing else reaches the terminal, whoever forgot it.
std::wstring wide(std::string_view text, bool ascii) {
  const std::string safe = ascii ? view::in_ascii(printable(text)) : printable(text);
  std::wstring result;
  for (std::size_t at = 0; at < safe.size();) {
    const CodePoint point = code_point_at(safe, at);
    result += static_cast<wchar_t>(point.value);
    at += point.length;
  }
  return result;
}

std::optional<Key> key_of(int kind, wint_t code) {
  if (kind == kCursesError) return std::nullopt;
  if (kind != kKeyCode) {
    switch (code) {
      case '\r':
      case '\n':
        return Key{KeyName::enter};
      case 0x1b:
        return Key{KeyName::escape};
      case 0x08:
      case 0x7f:
        return Key{KeyName::backspace};
      default:
        return Key{KeyName::character, static_cast<char32_t>(code)};
    }
  }
  switch (code) {
    case kKeyUp:
      return Key{KeyName::up};
    case kKeyDown:
      return Key{KeyName::down};
    case kKeyPreviousPage:
      return Key{KeyName::page_up};
    case kKeyNextPage:
      return Key{KeyName::page_down};
    case kKeyHome:
      return Key{KeyName::home};
    case kKeyEnd:
      return Key{KeyName::end};
    case kKeyEnter:
      return Key{KeyName::enter};
    case kKeyBackspace:
      return Key{KeyName::backspace};
    default:
      // Among them that the window has another size.
      return Key{KeyName::character, 0};
  }
}

}  // namespace

class Screen::Body {
 public:
  Body(const Curses& curses, bool colours, bool ascii)
      : curses_(curses), window_(*curses.stdscr), colours_(colours), ascii_(ascii) {}

  ~Body() {
    curses_.endwin();
    for (const int fault : kFaults) std::signal(fault, SIG_DFL);
    last_resort.is_needed = false;
  }

  void begin(const termios& modes) {
    prepare_last_resort(modes);
    for (const int fault : kFaults) std::signal(fault, give_terminal_back);
    curses_.cbreak();
    curses_.noecho();
    curses_.nonl();
    curses_.set_escdelay(kEscapeDelayMs);
    curses_.keypad(window_, true);
    curses_.nodelay(window_, true);
    curses_.curs_set(0);
    colours_ = colours_ && curses_.has_colors() && curses_.start_color() != kCursesError &&
               curses_.use_default_colors() != kCursesError;
    if (!colours_) return;
    for (const short colour : {kRed, kGreen, kYellow, kMagenta, kCyan}) curses_.init_pair(colour, colour, -1);
  }

  view::ScreenSize size() const {
    return {static_cast<std::size_t>(curses_.getmaxx(window_)),
            static_cast<std::size_t>(curses_.getmaxy(window_)), ascii_};
  }

  void paint(const std::vector<view::ScreenRow>& rows) {
    curses_.werase(window_);
    int line = 0;
    for (const view::ScreenRow& row : rows) {
      std::size_t column = 0;
      for (const view::Cell& part : row.parts) {
        put(line, column, part, row.marked);
        column += view::display_width(part.text);
      }
      // The mark goes on to the edge.
      const std::size_t columns = size().columns;
      if (row.marked && column < columns) put(line, column, {std::string(columns - column, ' ')}, true);
      ++line;
    }
    curses_.wnoutrefresh(window_);
    curses_.doupdate();
  }

  std::optional<Key> key() {
    wint_t code = 0;
    const int kind = curses_.wget_wch(window_, &code);
    return key_of(kind, code);
  }

 private:
  void prepare_last_resort(const termios& modes) const {
    last_resort = {.modes = modes};
    for (const char* capability : {"sgr0", "cnorm", "rmkx", "rmcup"}) {
      const char* sequence = curses_.tigetstr(capability);
      // -1: there is no capability of this name.
      if (sequence == nullptr || sequence == reinterpret_cast<char*>(-1)) continue;
      const std::string_view text = sequence;
      if (last_resort.length + text.size() > last_resort.sequences.size()) continue;
      std::ranges::copy(text,
                        last_resort.sequences.begin() + static_cast<std::ptrdiff_t>(last_resort.length));
      last_resort.length += text.size();
    }
    last_resort.is_needed = true;
  }

  void put(int line, std::size_t column, const view::Cell& part, bool marked) {
    const Look look = look_of(part.tone, colours_);
    curses_.wattr_set(window_, look.attributes | (marked ? kReverse : 0U), look.pair, nullptr);
    const std::wstring text = wide(part.text, ascii_);
    curses_.mvwaddnwstr(window_, line, static_cast<int>(column), text.data(), static_cast<int>(text.size()));
    curses_.wattr_set(window_, 0, 0, nullptr);
  }

  Curses curses_;
  CursesWindow* window_;
  bool colours_;
  bool ascii_;
};

Result<Screen> Screen::open(bool colours) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    return fail(
        ErrorCode::usage,
        "berth top needs a terminal for its input and output; `berth list` and `berth list --watch` do not");
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb")
    return fail(ErrorCode::usage,
                "the terminal cannot be painted (TERM is dumb or not set); `berth list --watch` only prints");
  BERTH_LET(const auto curses, Curses::load());
  std::setlocale(LC_CTYPE, "");
  const bool ascii = std::string_view(::nl_langinfo(CODESET)) != "UTF-8";
  termios modes{};
  ::tcgetattr(STDIN_FILENO, &modes);
  // Not initscr(), which ends the process where it does not know the terminal.
  if (curses.newterm(nullptr, stdout, stdin) == nullptr)
    return fail(ErrorCode::usage,
                "ncurses does not know the terminal '" + printable(terminal) +
                    "' (TERM), or cannot paint it; `TERM=xterm berth top` may do, `berth list --watch` does");
  auto body = std::make_unique<Body>(curses, colours, ascii);
  body->begin(modes);
  return Screen(std::move(body));
}

Screen::Screen(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Screen::Screen(Screen&&) noexcept = default;
Screen& Screen::operator=(Screen&&) noexcept = default;
Screen::~Screen() = default;

view::ScreenSize Screen::size() const {
  return body_->size();
}

void Screen::paint(const std::vector<view::ScreenRow>& rows) {
  body_->paint(rows);
}

std::optional<view::Key> Screen::key() {
  return body_->key();
}

void Screen::offer_to_clipboard(std::string_view text) {
  const std::string sequence = "\x1b]52;c;" + in_base64(text) + "\x07";
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, sequence.data(), sequence.size());
}

}  // namespace berth::screen
