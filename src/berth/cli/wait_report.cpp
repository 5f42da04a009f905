#include "berth/cli/wait_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include "berth/cli/environment.h"
#include "berth/render/waiting.h"

namespace berth::cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

void mention(std::string_view text) {
  // A wait is not given up because nobody reads about it.
  write_error(text);
}

}  // namespace

WaitReport::WaitReport(std::string request_words)
    : request_words_(std::move(request_words)), terminal_(::isatty(STDERR_FILENO) == 1) {}

void WaitReport::show(const Standing& standing, const Snapshot& snapshot) {
  const render::Style style = Environment::style_of(STDERR_FILENO);
  if (!shown_) {
    mention(fmt::format("berth: waiting for {}; Ctrl-C leaves the queue, --no-wait does not enter it\n",
                        request_words_));
    shown_ = true;
  }
  Standing told = render::told(standing, snapshot, style);
  const std::string line = in_one_line(told);
  if (terminal_) {
    mention(fmt::format("{}{}", kClearLine, render::cut(line, style.width - 1)));
    return;
  }
  render::Style timeless = style;
  timeless.now_s = 0;
  told = render::told(std::move(told), snapshot, timeless);
  told.waited = {};
  if (std::string now = in_one_line(told); now != last_) {
    last_ = std::move(now);
    mention(fmt::format("berth: {}\n", line));
  }
}

void WaitReport::end() {
  if (shown_ && terminal_) mention(kClearLine);
}

}  // namespace berth::cli
