#include "berth/jobs/attach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <optional>
#include <utility>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/hosts/own_terminal.h"
#include "berth/job/task_standing.h"
#include "berth/jobs/job_terminal.h"
#include "berth/jobs/listed_jobs.h"
#include "berth/jobs/model/job_output.h"
#include "berth/jobs/send_notice.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::jobs {
namespace {

using namespace std::chrono_literals;

// So much may wait for our terminal before no more is read. The job passes us over then.
constexpr std::size_t kMostToShow = 64U << 10U;
// Keys that the job does not read. The key that detaches is looked for before.
constexpr std::size_t kMostToType = 64U << 10U;
// A shell that brings its job into the foreground tells it nothing.
constexpr int kLookForForegroundMs = 200;
// A task writes how it ended before it closes its terminal.
constexpr auto kSaysItsEnd = 5s;

/// Our terminal and that of the job, connected.
class Attachment {
 public:
  enum class End { detached, closed };

  /// `greeting`: a line that is shown once keys are passed on, so that none is typed too early.
  Attachment(sys::Descriptor socket, char detach_key, const std::string& greeting)
      : socket_(std::move(socket)),
        screen_(own_screen()),
        detach_key_(detach_key),
        signals_(true),
        terminal_(true) {
    take_terminal();
    to_show_ = greeting + "\r\n";
  }

  End serve() {
    std::signal(SIGPIPE, SIG_IGN);
    while (!end_) {
      wait();
      pass_signals();
    }
    write_rest();
    terminal_.give_back();
    return *end_;
  }

 private:
  // A terminal that has room for a part of a write blocks the whole of it, and then no key is read.
  // It is opened anew, since the shell's own descriptor would be changed with it.
  static sys::Descriptor own_screen() {
    sys::Descriptor screen(::open("/proc/self/fd/1", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    return screen ? std::move(screen) : sys::Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  }

  void wait() {
    const bool is_ours = take_terminal();
    const bool shows = !to_show_.empty() && !terminal_.holds_back_output();
    std::array<pollfd, 4> polled{
        {{signals_.descriptor(), POLLIN, 0},
         {is_ours ? STDIN_FILENO : -1, POLLIN, 0},
         {shows ? screen_.get() : -1, POLLOUT, 0},
         {socket_.get(),
          static_cast<short>((to_show_.size() < kMostToShow ? POLLIN : 0) | (to_type_.empty() ? 0 : POLLOUT)),
          0}}};
    if (::poll(polled.data(), polled.size(), is_ours ? -1 : kLookForForegroundMs) <= 0) return;
    if (polled[1].revents != 0) read_keys();
    if (polled[2].revents != 0) show_some();
    if ((polled[3].revents & POLLOUT) != 0) send_keys();
    if ((polled[3].revents & ~POLLOUT) != 0) hear();
  }

  bool take_terminal() {
    const bool is_ours = terminal_.take_if_ours();
    // Of the changes of the window until now nobody was told.
    if (is_ours && !std::exchange(had_terminal_, is_ours)) tell_size();
    had_terminal_ = is_ours;
    return is_ours;
  }

  void tell_size() const {
    winsize size{};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return;
    const std::string packet = encode(WindowSize{size.ws_row, size.ws_col});
    (void)::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void read_keys() {
    // It may have been stopped since it looked, and go on in the background.
    if (!take_terminal()) return;
    std::array<char, kMostKeys> keys;
    const ssize_t got = ::read(STDIN_FILENO, keys.data(), keys.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      end_ = End::detached;  // the terminal is gone
      return;
    }
    type({keys.data(), static_cast<std::size_t>(got)});
  }

  void type(std::string_view keys) {
    const std::size_t end = keys.find(detach_key_);
    if (to_type_.size() < kMostToType) to_type_ += keys.substr(0, end);
    send_keys();
    if (end != std::string_view::npos) end_ = End::detached;
  }

  void send_keys() {
    while (!to_type_.empty()) {
      const std::string packet = encode(TypedKeys{to_type_.substr(0, kMostKeys)});
      if (::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
      to_type_.erase(0, packet.size() - 1);
    }
  }

  void hear() {
    std::array<char, 65536> piece;
    const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      end_ = End::closed;
      return;
    }
    const std::string_view shown(piece.data(), static_cast<std::size_t>(got));
    modes_.watch(shown);
    to_show_ += shown;
  }

  void show_some() {
    const ssize_t shown = sys::write_without_signal(screen_.get(), to_show_.data(),
                                                    std::min<std::size_t>(to_show_.size(), PIPE_BUF));
    if (shown > 0) {
      last_shown_ = to_show_[static_cast<std::size_t>(shown) - 1];
      to_show_.erase(0, static_cast<std::size_t>(shown));
    }
    if (shown < 0 && errno != EINTR && errno != EAGAIN) end_ = End::detached;
  }

  // The next words have a line of their own. A terminal that takes nothing is not waited for.
  void write_rest() {
    if (end_ == End::detached) to_show_.clear();
    if (!to_show_.empty()) last_shown_ = to_show_.back();
    to_show_ += modes_.undo();
    if (last_shown_ != '\n') to_show_ += "\r\n";
    pollfd ready{screen_.get(), POLLOUT, 0};
    while (!to_show_.empty() && ::poll(&ready, 1, 1000) > 0) {
      const std::size_t before = to_show_.size();
      show_some();
      if (to_show_.size() == before) return;
    }
  }

  void pass_signals() {
    while (const auto signal = signals_.next()) pass_on(*signal);
  }

  void pass_on(const hosts::SignalReader::Signal& signal) {
    switch (signal.number) {
      case SIGWINCH:
        return tell_size();
      case SIGTSTP:
        terminal_.give_back();
        sys::stop_as_by_terminal();
        return terminal_.has_been_away();
      case SIGCONT:
        return terminal_.has_been_away();
      default:
        break;
    }
    // Typed when the terminal had just become ours, and did not pass every key yet.
    if (signal.is_of_terminal && signal.number == SIGINT) return type("\x03");
    if (signal.is_of_terminal && signal.number == SIGQUIT) return type("\x1c");
    end_ = End::detached;
    write_rest();
    terminal_.give_back();
    sys::end_like({0, signal.number});
  }

  sys::Descriptor socket_;
  sys::Descriptor screen_;
  char detach_key_;
  hosts::SignalReader signals_;
  hosts::OwnTerminal terminal_;
  bool had_terminal_ = false;
  std::string to_show_, to_type_;
  char last_shown_ = '\n';
  ScreenModes modes_;
  std::optional<End> end_;
};

Result<void> check_is_attachable(TaskId id, const Job& job, const TaskStanding& standing) {
  const std::string name = to_text(id);
  if (!job.tty)
    return fail(ErrorCode::failure,
                "job {0} was submitted without --tty, so it has no terminal; "
                "berth log -f {0} shows what it prints",
                name);
  if (is_over(standing))
    return fail(ErrorCode::failure, "job {0} is over ({1}); berth log {0} shows what it printed", name,
                view::standing_word(standing));
  return {};
}

/// A job that runs, and its terminal.
struct RunningJob {
  TaskStanding standing;
  sys::Descriptor socket;
};

/// Waits until it has begun, and says so.
Result<RunningJob> once_it_runs(const JobSpool& spool, TaskId id, const Job& job) {
  WaitToBegin wait;
  for (;;) {
    BERTH_DO(spool.still_has(id.job));
    BERTH_LET(const auto standing, spool.standing(id));
    BERTH_DO(check_is_attachable(id, job, standing));
    if (standing.phase == TaskPhase::running) {
      // It was made before the job began, and is gone once the job has ended.
      auto socket = connect_to_terminal(spool.terminal_path(id));
      if (socket) return RunningJob{standing, *std::move(socket)};
      BERTH_LET(const auto now, spool.standing(id));
      if (now.phase == TaskPhase::running && now.starts == standing.starts)
        return fail(
            ErrorCode::failure,
            "job {0} runs without a terminal: the process that kept its terminal was killed ({1}); berth "
            "log -f {0} shows what it prints",
            to_text(id), socket.error().message);
    } else {
      wait.look(spool, id, standing);
    }
    sleep_a_moment();
  }
}

/// Says how the job has ended whose terminal has closed. `before`: its state when we came to it.
Result<command::Output> told_end(const JobSpool& spool, TaskId id, const Job& job,
                                 const TaskStanding& before) {
  const auto until = std::chrono::steady_clock::now() + kSaysItsEnd;
  BERTH_LET(auto now, spool.standing(id));
  while (now.phase == TaskPhase::running && now.starts == before.starts) {
    if (std::chrono::steady_clock::now() >= until)
      return fail(ErrorCode::failure,
                  "the terminal of job {0} has closed, and the job still runs; berth jobs {0} and "
                  "berth log -f {0} show it",
                  to_text(id));
    sleep_a_moment();
    BERTH_LET(now, spool.standing(id));
  }
  command::Output output;
  if (!is_over(now)) {
    output.err = command::as_lines(
        {fmt::format("job {0} has ended, and is to run again: it is {1}; berth attach {0} when it runs",
                     to_text(id), view::standing_word(now))});
    return output;
  }
  output.status = exit_status_of(now);
  output.err = command::as_lines(
      {fmt::format("{} is over: {}{}", subject_of(id, job), view::standing_word(now),
                   now.exit_status ? fmt::format(", exit status {}", *now.exit_status) : "")});
  return output;
}

}  // namespace

Result<command::Output> attach(const JobSpool& spool, const NumberedJob& job, char detach_key) {
  const std::vector<TaskId> tasks = job.tasks();
  const TaskId id = tasks.front();
  if (tasks.size() > 1)
    return fail(ErrorCode::usage, "{} is an array: berth attach {}", job.number, to_text(id));
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    return fail(ErrorCode::usage,
                "berth attach needs a terminal for its input and its output; berth log -f {} shows what "
                "the job prints",
                to_text(id));
  BERTH_LET(auto running, once_it_runs(spool, id, job.job));
  const std::string greeting = fmt::format("berth: attached to {}; {} detaches, and the job goes on",
                                           printable(subject_of(id, job.job)), key_for_people(detach_key));
  if (Attachment(std::move(running.socket), detach_key, greeting).serve() == Attachment::End::closed)
    return told_end(spool, id, job.job, running.standing);
  return command::Output{
      .err = command::as_lines({fmt::format("detached from {}, which goes on; berth attach {} comes back",
                                            subject_of(id, job.job), to_text(id))})};
}

namespace {

// A cut in an output is a hole in its file, which reads as NULs. Gives how many bytes are to be
// read up to the next.
std::size_t skip_cut(int file, std::size_t most) {
  const off_t at = ::lseek(file, 0, SEEK_CUR);
  const off_t data = ::lseek(file, at, SEEK_DATA);
  if (data < 0) return errno == ENXIO ? 0 : most;
  const off_t hole = ::lseek(file, data, SEEK_HOLE);
  ::lseek(file, data, SEEK_SET);
  return hole < 0 ? most : std::min(most, static_cast<std::size_t>(hole - data));
}

Result<void> copy(int file) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const std::size_t whole = skip_cut(file, buffer.size());
    if (whole == 0) return {};
    const ssize_t got = ::read(file, buffer.data(), whole);
    if (got < 0) return sys::fail_errno("reading what the job has printed");
    if (got == 0) return {};
    BERTH_DO(command::write_log(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
  }
}

/// Where the last `lines` lines of the file begin. A last line that is not whole counts as one.
off_t last_lines(int file, unsigned lines) {
  std::array<char, 1 << 16> buffer;
  const off_t size = ::lseek(file, 0, SEEK_END);
  off_t end = size;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(buffer.size()));
    const ssize_t got = ::pread(file, buffer.data(), static_cast<std::size_t>(end - begin), begin);
    if (got <= 0) return end;
    for (ssize_t at = got; at > 0; --at) {
      const bool is_break = buffer[static_cast<std::size_t>(at - 1)] == '\n' && begin + at < size;
      if (is_break && --lines == 0) return begin + at;
    }
    end = begin;
  }
  return 0;
}

std::string never_began(TaskId id, const TaskStanding& standing) {
  const std::string why = standing.reason.empty() ? "" : ": " + printable(standing.reason);
  if (is_over(standing))
    return fmt::format("job {} was {} before it began, so it has no log{}", to_text(id),
                       view::standing_word(standing), why);
  return fmt::format(
      "job {0} has not begun, so it has no log yet: it is {1}{2}; berth log -f {0} waits for it", to_text(id),
      view::standing_word(standing), why);
}

Result<void> print(const JobSpool& spool, TaskId id, const LogWish& wish) {
  const std::string path = spool.output_path(id);
  sys::Descriptor file;
  WaitToBegin wait;
  for (;;) {
    BERTH_DO(spool.still_has(id.job));
    // Asked first: what it has written before it was over is there.
    BERTH_LET(const auto standing, spool.standing(id));
    const bool is_first = !file;
    if (is_first) file = sys::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file && errno != ENOENT) return sys::fail_errno("opening " + path);
    if (file && is_first && wish.lines > 0) ::lseek(file.get(), last_lines(file.get(), wish.lines), SEEK_SET);
    if (file) BERTH_DO(copy(file.get()));
    if (wish.follow && !is_over(standing)) {
      if (standing.phase == TaskPhase::waiting && standing.starts == 0) wait.look(spool, id, standing);
      sleep_a_moment();
      continue;
    }
    if (standing.starts == 0) command::print_message(never_began(id, standing));
    return {};
  }
}

}  // namespace

Result<void> print_log(const JobSpool& spool, const NumberedJob& job, const LogWish& wish) {
  const std::vector<TaskId> tasks = job.tasks();
  if (wish.follow && tasks.size() > 1)
    return fail(ErrorCode::usage, "{} is an array: berth log -f {}", job.number, to_text(tasks.front()));
  const auto has_log = [&](TaskId id) { return ::access(spool.output_path(id).c_str(), F_OK) == 0; };
  if (tasks.size() > 1 && std::ranges::none_of(tasks, has_log))
    command::print_message(fmt::format(
        "no task of job {0} has begun, so there is no log yet; berth jobs {0} shows them", job.number));
  for (const TaskId id : tasks) {
    if (tasks.size() > 1 && !has_log(id)) continue;
    if (tasks.size() > 1) BERTH_DO(command::write_log(fmt::format("==> {} <==\n", to_text(id))));
    BERTH_DO(print(spool, id, wish));
  }
  return {};
}

}  // namespace berth::jobs
