// A live screen. One thread looks (top_looker.h); this one has the terminal: it sleeps until there
// is news, a key or a signal, and shows what view::top_screen makes of it all.

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "berth/base/record.h"
#include "berth/cli/top_looker.h"
#include "berth/command/command.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/screen/model/top.h"
#include "berth/screen/screen.h"

namespace berth::cli {
namespace {

constexpr std::string_view kTopAbout =
    "Shows the machine on a screen that is kept up to date: a line for each GPU, with its load, its memory "
    "and who has it; the leases with their ends; the queue, with about when each request starts; the hours "
    "of each GPU; your jobs; and the processes. Your own come first. Below them stand load and memory over "
    "time, of the GPU under the cursor or of all; t changes the span. The arrow keys move, Enter folds a "
    "section, s sorts, / shows only lines with certain words, q quits, and ? tells all keys.\n"
    "\n"
    "Enter on a job of yours shows what it prints, until Esc. c copies the command for the line under the "
    "cursor, such as `berth release a1b2c3`, to the clipboard, if the terminal allows that. x ends a lease, "
    "request or job of yours, after you have confirmed it. o holds a waiting job of yours or lets it go, and "
    "f and l put it first or last among those with its request, as `berth edit` does.\n"
    "\n"
    "It needs a terminal. `berth list`, `berth queue` and `berth jobs` print the same values, also into a "
    "pipe.\n"
    "\n"
    "    berth top\n"
    "    berth top --anywhere     # all machines of the lab";

constexpr std::int64_t kLongestPauseS = 3600;
// The clock at the top, and how old the news is.
constexpr int kTickMs = 1000;

/// The signals that end it, as something to wait for: the terminal is given back first.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    descriptor_ = sys::Descriptor(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int descriptor() const { return descriptor_.get(); }
  /// The one that has come, or 0.
  int take() const {
    signalfd_siginfo info{};
    return ::read(descriptor_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                                        : 0;
  }
  /// Ends by the signal, as if this process had never waited for it.
  void end_by(int signal) const {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
    ::pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  }

 private:
  sigset_t set_{};
  sys::Descriptor descriptor_;
};

/// The screen until somebody ends it.
class LiveView {
 public:
  LiveView(screen::Screen screen, TopLooker& looker)
      : screen_(std::move(screen)), looker_(looker), sight_(std::make_shared<view::TopSight>()) {}

  /// Gives the signal that ended it, or 0.
  int go_on(const EndSignals& signals) {
    while (true) {
      renew_log();
      shown_ =
          view::top_screen(*sight_, view_, screen_.size(), command::Environment::style_of(STDOUT_FILENO));
      screen_.paint(shown_.rows);
      std::array<pollfd, 3> ready{
          {{STDIN_FILENO, POLLIN, 0}, {looker_.descriptor(), POLLIN, 0}, {signals.descriptor(), POLLIN, 0}}};
      ::poll(ready.data(), ready.size(), kTickMs);
      if (const int signal = signals.take(); signal != 0) return signal;
      take_news();
      if (!take_keys()) return 0;
      // A terminal that has gone away without a word.
      if ((ready[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return SIGHUP;
    }
  }

 private:
  void take_news() {
    TopLooker::News news = looker_.take();
    if (news.sight) sight_ = std::move(news.sight);
    if (news.answer) view::hear(view_, *news.answer);
  }

  /// Reads what the job has printed meanwhile, unless the reader looks at something further up.
  void renew_log() {
    if (!view_.log || !view_.log->follows()) return;
    auto text = jobs::end_of_output(view_.log->path, view::kTopLogLines, view::kTopLogBytes);
    view_.log->error = text ? std::string() : text.error().message;
    view_.log->text = std::move(text).value_or("");
  }

  // Takes all keys that were typed: if a key is held down, the screen must not lag behind. Returns
  // false if a key ends the program.
  bool take_keys() {
    while (const auto key = screen_.key()) {
      const view::TopDeed deed = view::press(view_, *key, shown_, *sight_);
      switch (deed.kind) {
        case view::TopDeed::Kind::quit:
          return false;
        case view::TopDeed::Kind::look:
          looker_.look_now();
          break;
        case view::TopDeed::Kind::copy:
          screen_.offer_to_clipboard(deed.words.front());
          break;
        case view::TopDeed::Kind::perform:
          view_.said = "asked; waiting for the answer";
          looker_.perform(deed.words);
          break;
        case view::TopDeed::Kind::nothing:
          break;
      }
      renew_log();
      shown_ =
          view::top_screen(*sight_, view_, screen_.size(), command::Environment::style_of(STDOUT_FILENO));
    }
    return true;
  }

  screen::Screen screen_;
  TopLooker& looker_;
  std::shared_ptr<const view::TopSight> sight_;
  view::TopView view_;
  view::TopScreen shown_;
};

class Top : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kTopAbout;
    syntax.option(
        "Options", "interval", "SECS", "look every SECS seconds (default 2)",
        [this](std::string_view value) -> Result<void> {
          BERTH_LET(const auto seconds, seconds_from_text(value, Unitless::is_base));
          if (seconds < 1 || seconds > kLongestPauseS)
            return fail(ErrorCode::usage, "must be 1 to 3600 seconds");
          looker_.every_s = seconds;
          return {};
        },
        'i');
    syntax.add(command::source_option(looker_.source));
    add_anywhere_options(syntax, anywhere_, "all hosts of the lab, each asked through ssh");
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    BERTH_DO(settle(anywhere_));
    if (anywhere_.anywhere) {
      BERTH_LET(looker_.hosts, hosts::hosts_meant(anywhere_));
    }
    int signal = 0;
    const EndSignals signals;
    {
      BERTH_LET(auto screen, screen::Screen::open(command::Environment::style_of(STDOUT_FILENO).colour));
      if (!anywhere_.anywhere) environment.start_probe(true);
      BERTH_LET(const auto looker, TopLooker::start(looker_, environment));
      signal = LiveView(std::move(screen), *looker).go_on(signals);
    }
    if (signal != 0) signals.end_by(signal);
    // _exit and not the end of main: destructors would take objects away from the thread that
    // looks, perhaps in the middle of a look.
    ::_exit(0);
  }

 private:
  TopLooker::Options looker_;
  command::AnywhereOptions anywhere_;
};

}  // namespace

BERTH_COMMAND(make_top, Top);

}  // namespace berth::cli
