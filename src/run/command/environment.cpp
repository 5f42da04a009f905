#include "berth/command/environment.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <ctime>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/lease/look.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/view/text.h"

namespace berth::command {
namespace {

// Longer than a reader that reads takes to make room, and too short to be noticed in a hand-over.
constexpr std::chrono::milliseconds kMoment{50};

unsigned terminal_width(int descriptor) {
  if (const auto columns = number_from_text<unsigned>(sys::variable("COLUMNS")); columns && *columns > 0)
    return *columns;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// Whether there is room before `until`.
bool can_write(int descriptor, std::chrono::steady_clock::time_point until) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
  if (left < milliseconds(0)) return false;
  pollfd ready{descriptor, POLLOUT, 0};
  return ::poll(&ready, 1, static_cast<int>(left.count())) > 0;
}

// On the error stream. Nothing is folded in a pipe.
std::string for_reader(std::string_view lines) {
  return view::for_terminal(view::folded(lines, Environment::style_of(STDERR_FILENO)));
}

}  // namespace

source::ProbeOptions probe_options() {
  source::ProbeOptions options = leasing::probe_options();
  if (const auto program = sys::variable("BERTH_PROGRAM"); !program.empty()) options.program = program;
  return options;
}

void Environment::start_probe(bool keep) {
  source::ProbeOptions options = probe_options();
  options.keep = keep;
  probe_ = source::ProbeSource::start(std::move(options));
}

void Environment::fork_probe() {
  source::ProbeOptions options = probe_options();
  options.is_forked = options.program == source::ProbeOptions{}.program;
  probe_ = source::ProbeSource::start(std::move(options));
}

Result<source::Source*> Environment::source(source::SourceKind kind) {
  if (!probe_) start_probe(false);
  if (!*probe_) return std::unexpected(probe_->error());
  (*probe_)->set_kind(kind);
  return &**probe_;
}

leasing::SourceAccess Environment::access(source::SourceKind kind) {
  return {[this, kind] { return source(kind); }, [this] { end_probe(); }};
}

namespace {

std::optional<bool>& wanted_colour() {
  static std::optional<bool> wanted;
  return wanted;
}

}  // namespace

void Environment::set_colour(std::optional<bool> wanted) {
  wanted_colour() = wanted;
}

view::Style Environment::style_of(int descriptor) {
  view::Style style;
  const bool terminal = ::isatty(descriptor) == 1;
  style.width = terminal ? terminal_width(descriptor) : view::kUnlimited;
  style.colour = wanted_colour().value_or(terminal && sys::variable("NO_COLOR").empty() &&
                                          sys::variable("TERM") != "dumb");
  style.now_s = std::time(nullptr);
  style.utc_offset_s = sys::utc_offset_s;
  return style;
}

Result<std::string> own_path() {
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (length < 0) return sys::fail_errno("finding the program's own path");
  return std::string(buffer.data(), static_cast<std::size_t>(length));
}

Result<std::string> program_path() {
  BERTH_LET(std::string path, own_path());
  constexpr std::string_view kGone = " (deleted)";
  if (path.ends_with(kGone)) path.resize(path.size() - kGone.size());
  return path;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

void keep_standard_descriptors() {
  std::array<pollfd, 3> descriptors{{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}};
  if (::poll(descriptors.data(), descriptors.size(), 0) <= 0) return;
  for (const pollfd& each : descriptors) {
    if ((each.revents & POLLNVAL) == 0) continue;
    // The wrong direction on purpose: writing there must fail, not vanish.
    const int file = ::open("/dev/null", each.fd == 0 ? O_WRONLY : O_RDONLY);
    if (file >= 0 && file != each.fd) {
      ::dup2(file, each.fd);
      ::close(file);
    }
  }
}

void survive_limit_on_file_sizes() {
  // A handler and not SIG_IGN, which a command that we become or start would inherit.
  struct sigaction handling{};
  handling.sa_handler = [](int) {};
  handling.sa_flags = SA_RESTART;
  struct sigaction before{};
  if (::sigaction(SIGXFSZ, &handling, &before) == 0 && before.sa_handler != SIG_DFL)
    ::sigaction(SIGXFSZ, &before, nullptr);
}

void hear_signals() {
  ::signal(SIGTERM, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

namespace {

// `at_broken_pipe`: what SIGPIPE does meanwhile.
Result<void> write_with(sighandler_t at_broken_pipe, int descriptor, std::string_view text) {
  const auto before = std::signal(SIGPIPE, at_broken_pipe);
  Result<void> result;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      // Somebody made the terminal or pipe non-blocking; wait as a blocking one would.
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (written < 0) {
      result = sys::fail_errno("writing the answer");
      break;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  std::signal(SIGPIPE, before);
  return result;
}

}  // namespace

Result<void> write_all(int descriptor, std::string_view text) {
  return write_with(SIG_IGN, descriptor, text);
}

Result<void> write_log(std::string_view text) {
  return write_with(SIG_DFL, STDOUT_FILENO, text);
}

void write_error(std::string_view text) {
  [[maybe_unused]] const auto written = write_all(STDERR_FILENO, for_reader(text));
}

bool mention(std::string_view words) {
  const std::string safe = for_reader(words);
  std::string_view text = safe;
  // A reader that has gone away is no reason to end a job, or a wait.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const auto until = std::chrono::steady_clock::now() + kMoment;
  while (!text.empty() && can_write(STDERR_FILENO, until)) {
    // Others may write there too, and take the room that there was. It cannot be made non-blocking:
    // the open file is theirs as well.
    const sys::Tick interrupt(kMoment);
    const ssize_t written = ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) break;
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  std::signal(SIGPIPE, before);
  return text.empty();
}

bool confirm(std::string_view question) {
  mention(fmt::format("{} [y/N] ", question));
  char answer = 0;
  return ::read(STDIN_FILENO, &answer, 1) == 1 && (answer == 'y' || answer == 'Y');
}

namespace {

Result<std::string> text_of(int file, std::size_t most) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(file, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return sys::fail_errno("reading");
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > most) return fail(ErrorCode::usage, "it is longer than {}", bytes_for_people(most));
  }
}

}  // namespace

Result<std::string> text_of_input(const std::string& name, std::size_t most) {
  const sys::Descriptor file(name == kInput ? ::dup(STDIN_FILENO)
                                            : ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  auto text = file ? text_of(file.get(), most) : Result<std::string>(sys::fail_errno("opening"));
  if (text) return text;
  return std::unexpected(context(text.error(), name == kInput ? "standard input" : printable(name)));
}

int report(const Result<Output>& result) {
  if (!result) {
    std::string text = result.error().message;
    while (text.ends_with('\n')) text.pop_back();
    write_error(fmt::format("berth: {}\n", text));
    return outcome_of(result.error().code).exit_status;
  }
  if (!result->err.empty()) write_error(result->err);
  if (const auto written = write_all(1, view::for_terminal(result->out)); !written) {
    Error error = written.error();
    if (!result->done.empty()) error.message += fmt::format("; all the same, {}", result->done);
    return report(std::unexpected(std::move(error)));
  }
  return result->status;
}

namespace {

std::string as_line(const std::string& sentence) {
  return fmt::format("berth: {}\n", printable(sentence));
}

}  // namespace

void print_message(const std::string& sentence) {
  mention(as_line(sentence));
}

std::string as_lines(const std::vector<std::string>& sentences) {
  std::string lines;
  for (const std::string& sentence : sentences) lines += as_line(sentence);
  return lines;
}

namespace {

constexpr std::string_view kOurName = "berth: ";

Result<Said> ask(std::string program, std::vector<std::string> words, std::chrono::milliseconds patience,
                 std::size_t most_bytes, bool kills_late) {
  const sys::Descriptor out = sys::memory_file("berth-out");
  const sys::Descriptor err = sys::memory_file("berth-err");
  if (!out || !err) return sys::fail_errno("making a place for what a program says");
  BERTH_LET(auto child, sys::Child::spawn({.program = std::move(program),
                                           .arguments = std::move(words),
                                           .output = out.get(),
                                           .error = err.get()}));
  Said said;
  said.ending = child.wait(patience);
  if (!said.ending && kills_late) child.kill(SIGKILL);
  BERTH_LET(said.out, sys::read_start(out.get(), most_bytes));
  BERTH_LET(said.err, sys::read_start(err.get(), most_bytes));
  return said;
}

}  // namespace

Result<Said> ask_program(std::string program, std::vector<std::string> words,
                         std::chrono::milliseconds patience, std::size_t most_bytes) {
  return ask(std::move(program), std::move(words), patience, most_bytes, false);
}

Result<Said> ask_program_in_time(std::string program, std::vector<std::string> words,
                                 std::chrono::milliseconds patience, std::size_t most_bytes,
                                 std::string_view late) {
  BERTH_LET(auto said, ask(std::move(program), std::move(words), patience, most_bytes, true));
  if (!said.ending) return fail(ErrorCode::timed_out, std::string(late));
  return said;
}

std::string first_line(std::string_view said) {
  std::string_view line = said.substr(0, said.find('\n'));
  if (line.starts_with(kOurName)) line.remove_prefix(kOurName.size());
  return printable(line);
}

Result<std::string> berth_serve_path() {
  BERTH_LET(const auto self, own_path());
  std::string program = self.substr(0, self.rfind('/')) + "/berth-serve";
  if (::access(program.c_str(), X_OK) != 0 && errno == ENOENT) {
    return fail(ErrorCode::failure,
                program +
                    " is missing: what pip builds from the sources lacks it; the wheel, the tarball and the "
                    "Debian package have it");
  }
  return program;
}

Error become_berth_serve(std::string_view task, std::span<char* const> words) {
  const auto program = berth_serve_path();
  if (!program) return program.error();
  std::string name = "berth-serve";
  std::string first(task);
  std::vector<char*> arguments{name.data()};
  if (!first.empty()) arguments.push_back(first.data());
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.push_back(nullptr);
  ::execv(program->c_str(), arguments.data());
  return sys::system_error(errno, fmt::format("starting {}", *program));
}

}  // namespace berth::command
