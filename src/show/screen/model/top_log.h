#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::view {

struct Key;
struct ScreenSize;
struct TopScreen;
struct TopSight;

/// What a job of the reader's has printed, on a screen of its own.
struct TopLog {
  std::string job;        ///< its id
  std::string path;       ///< of the file with it
  std::string text{};     ///< its end
  std::string error{};    ///< why there is no text
  std::size_t below = 0;  ///< so many lines below the screen; 0: it follows what the job prints

  bool follows() const { return below == 0; }
};

/// How much of an output is shown: the rest is for `berth log`.
inline constexpr std::size_t kTopLogLines = 2000;
inline constexpr std::size_t kTopLogBytes = std::size_t{256} << 10U;

/// The lines of an output as a terminal of this width would have left them: of a line that was
/// written several times the last, without colours, and nothing in it moves a cursor.
std::vector<std::string> pieces_of_log(std::string_view text, std::size_t width);

TopScreen log_screen(const TopLog& log, const TopSight& sight, const ScreenSize& size);

/// False: the reader goes back. `screen`: what the reader saw when the key was pressed.
bool press_in_log(TopLog& log, const Key& key, const TopScreen& screen);

}  // namespace berth::view
