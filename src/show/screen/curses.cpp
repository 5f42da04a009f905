#include "berth/screen/curses.h"

#include "berth/sys/dynamic_library.h"

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

}  // namespace berth::screen
