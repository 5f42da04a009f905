#include "berth/command/watch.h"

#include <poll.h>

#include <algorithm>

#include "berth/base/units.h"

namespace berth::command {
namespace {

constexpr std::int64_t kDefaultIntervalSeconds = 2;
constexpr std::int64_t kLongestIntervalSeconds = 86'400;

std::string on_screen(std::string_view text) {
  // Home, each line cleared to its end, then all below: the screen does not flicker as it would if
  // it were wiped first.
  std::string screen = "\x1b[H";
  for (const char c : text) {
    if (c == '\n') screen += "\x1b[K";
    screen += c;
  }
  return screen + "\x1b[J";
}

}  // namespace

void add_watch_options(Syntax& syntax, WatchOptions& options, std::string_view schema_help) {
  syntax.flag("Options", "json", schema_help, options.json);
  syntax.option(
      "Options", "watch", "[SECS]", "again every SECS seconds (default 2)",
      [&options](std::string_view value) -> Result<void> {
        BERTH_LET(const std::int64_t seconds,
                  value.empty() ? kDefaultIntervalSeconds : seconds_from_text(value, Unitless::is_base));
        if (seconds < 1) return fail(ErrorCode::usage, "must be a second or more");
        options.interval_s = seconds;
        return {};
      },
      'w');
}

Result<Output> show(const WatchOptions& options,
                    const std::function<Result<Output>(view::Layout layout)>& look) {
  if (!options.interval_s) return look(view::Layout::lines);
  const bool terminal = Environment::style_of(1).colour && !options.json;
  while (true) {
    auto output = look(view::Layout::line);
    if (!output) return output;
    output->out = view::for_terminal(output->out);
    if (terminal) output->out = on_screen(output->out + "\n" + view::for_terminal(output->err));
    if (!terminal && !output->err.empty()) write_error(output->err);
    BERTH_DO(write_all(1, output->out));
    ::poll(nullptr, 0, static_cast<int>(std::min(*options.interval_s, kLongestIntervalSeconds) * 1000));
  }
}

}  // namespace berth::command
