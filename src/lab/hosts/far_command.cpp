#include "berth/hosts/far_command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/environment.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/view/text.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;

// So much may wait on this side before no more is read from the other.
constexpr std::size_t kMostWaiting = 256U << 10U;
// If a stream stays silent for this long after the end of the command, it is no longer waited for.
// A process that the command left behind has it open, or another ssh that shares the connection.
constexpr auto kSilence = 1s;
// A shell that brings its job into the foreground tells it nothing.
constexpr auto kLookForForeground = 200ms;
// The keys of a terminal whose user has changed nothing.
constexpr std::string_view kInterruptKey = "\x03";
constexpr std::string_view kQuitKey = "\x1c";

bool is_dismissed(const std::vector<caller::Event>& said) {
  return std::ranges::any_of(
      said, [](const caller::Event& what) { return std::holds_alternative<caller::Dismissed>(what); });
}

}  // namespace

Result<std::string> secret_mark() {
  BERTH_LET(const auto word, sys::random_word());
  return fmt::format("berth-{}\n", word);
}

void FarCommand::Sink::write_some() {
  if (closed) return waiting.clear();
  const ssize_t written =
      ::write(descriptor, waiting.data(), std::min<std::size_t>(waiting.size(), PIPE_BUF));
  if (written > 0) waiting.erase(0, static_cast<std::size_t>(written));
  if (written >= 0 || errno == EINTR || errno == EAGAIN) return;
  closed = true;
  waiting.clear();
}

void FarCommand::Sink::write_rest() {
  if (!closed) (void)command::write_all(descriptor, waiting);
  waiting.clear();
}

Result<ProcessEnd> FarCommand::serve() {
  std::signal(SIGPIPE, SIG_IGN);
  take_output();
  while (!has_all_come()) {
    wait();
    take_output();
    pass_signals();
    // A command on this machine would end in the same way if it wrote where nobody reads.
    if (out_.closed) end_by(SIGPIPE);
  }
  (terminal_ ? out_ : err_).waiting += finder_.rest();
  out_.write_rest();
  err_.write_rest();
  own_terminal_.give_back();
  if (!finder_.end()) return std::unexpected(channel_.why_ended());
  return *finder_.end();
}

bool FarCommand::has_all_come() const {
  const bool silent = std::chrono::steady_clock::now() >= heard_at_ + kSilence;
  if (finder_.end()) return channel_.output_has_ended() || terminal_ || silent;
  return channel_.output_has_ended() && (terminal_ || channel_.errors_have_ended() || silent);
}

void FarCommand::wait() {
  has_input_ = has_input();
  const bool reads = has_input_ && !input_has_ended_ && channel_.unsent() < kMostWaiting;
  const bool writes = !out_.waiting.empty() && !own_terminal_.holds_back_output();
  std::vector<pollfd> others{{signals_.descriptor(), POLLIN, 0},
                             {reads ? STDIN_FILENO : -1, POLLIN, 0},
                             {writes ? out_.descriptor : -1, POLLOUT, 0},
                             {err_.waiting.empty() ? -1 : err_.descriptor, POLLOUT, 0}};
  if (entry_ != nullptr) entry_->add_to(others);
  sys::Deadline until;
  const auto at_latest = [&](std::chrono::steady_clock::time_point at) {
    until = std::min(until.value_or(at), at);
  };
  if (finder_.end() || channel_.output_has_ended()) at_latest(heard_at_ + kSilence);
  if (look_) at_latest(look_());
  if (!has_input_) at_latest(std::chrono::steady_clock::now() + kLookForForeground);
  if (entry_ != nullptr)
    if (const auto next = entry_->next_deadline()) at_latest(*next);
  const bool is_full = std::max(out_.waiting.size(), err_.waiting.size()) >= kMostWaiting;
  wait_on(channel_, others, until, !is_full);
  if (others[1].revents != 0) read_input();
  if (others[2].revents != 0) out_.write_some();
  if (others[3].revents != 0) err_.write_some();
  if (entry_ != nullptr && is_dismissed(entry_->poll())) entry_ = nullptr;
}

bool FarCommand::has_input() {
  const bool is_ours = own_terminal_.take_if_ours();
  // In the background this process was not told of changes of the window.
  if (is_ours && !has_input_) fit_window();
  return is_ours;
}

void FarCommand::fit_window() const {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) channel_.resize(size.ws_row, size.ws_col);
}

void FarCommand::read_input() {
  // This process may have been stopped since it looked, and may go on in the background.
  if (!has_input()) return;
  std::array<char, 65536> piece;
  const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    input_has_ended_ = true;
    if (!terminal_) channel_.send(encode(Frame{FrameKind::end_of_input, ""}));
    return;
  }
  const std::string text(piece.data(), static_cast<std::size_t>(got));
  channel_.send(terminal_ ? text : encode(Frame{FrameKind::input, text}));
}

void FarCommand::take_output() {
  const std::string output = channel_.take_output();
  const std::string errors = channel_.take_errors();
  if (!output.empty() || !errors.empty()) heard_at_ = std::chrono::steady_clock::now();
  if (terminal_) {
    // A message of ssh itself belongs to the connection and not to the command.
    out_.waiting += finder_.feed(output);
  } else {
    out_.waiting += output;
    err_.waiting += finder_.feed(errors);
  }
}

void FarCommand::pass_signals() {
  if (channel_.unsent() == 0) signal_waits_ = false;
  while (const auto signal = signals_.next()) pass_on(*signal);
}

void FarCommand::pass_on(const SignalReader::Signal& signal) {
  switch (signal.number) {
    case SIGWINCH:
      return fit_window();
    case SIGTSTP:
      own_terminal_.give_back();
      sys::stop_as_by_terminal();
      return own_terminal_.has_been_away();
    case SIGCONT:
      return own_terminal_.has_been_away();
    default:
      break;
  }
  if (terminal_ && signal.is_of_terminal && (signal.number == SIGINT || signal.number == SIGQUIT)) {
    // Typed when the terminal had just become ours, and did not pass every key yet.
    channel_.send(signal.number == SIGINT ? kInterruptKey : kQuitKey);
  } else if (terminal_ || signal_waits_) {
    // The command loses its terminal or its caller, which ends it.
    end_by(signal.number);
  } else {
    channel_.send(encode(Frame{FrameKind::signal, std::to_string(signal.number)}));
    signal_waits_ = true;
  }
}

void FarCommand::end_by(int signal) {
  own_terminal_.give_back();
  channel_.let_go();
  sys::end_like({0, signal});
}

namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenTries = 1s;

bool is_of_a_restart(const Error& error) {
  return error.os_error == ECONNREFUSED || error.os_error == ENOENT;
}

}  // namespace

Result<LabQueueEntry> LabQueueEntry::take(std::string socket, unsigned lane, unsigned gpus,
                                          std::vector<std::string> hosts) {
  BERTH_LET(auto mark, sys::random_word());
  LabQueueEntry entry(std::move(socket), std::move(mark), lane, gpus, std::move(hosts));
  auto link = LabAgentLink::open(entry.path_);
  if (!link && !is_of_a_restart(link.error())) return std::unexpected(link.error());
  if (!link) {
    entry.absence_ = {std::move(link).error()};
    return entry;
  }
  entry.link_ = *std::move(link);
  entry.say_all();
  return entry;
}

void LabQueueEntry::add_to(std::vector<pollfd>& polled) const {
  if (link_) polled.push_back({link_->descriptor(), link_->wants(), 0});
}

sys::Deadline LabQueueEntry::next_deadline() const {
  if (link_) return std::nullopt;
  return next_try_;
}

std::vector<caller::Event> LabQueueEntry::poll() {
  std::vector<caller::Event> said;
  if (!link_) come_back();
  if (!link_) {
    if (absence_ && !std::exchange(absence_->is_told, true))
      said.emplace_back(caller::AgentIsMissing{absence_->why});
    return said;
  }
  if (std::exchange(absence_, std::nullopt)) said.emplace_back(caller::AgentIsThere{});
  link_->attend();
  while (const auto line = link_->next()) {
    const auto& [word, rest] = *line;
    if (word == "open") let_go_.erase(rest);
    // The agent ignores a host that the request has left meanwhile.
    if (word == "answer" && std::ranges::find(hosts_, rest) != hosts_.end()) link_->send("here " + rest);
    if (auto what = caller::said_by_agent(word, rest)) said.push_back(*std::move(what));
  }
  if (!link_->has_ended()) return said;
  link_.reset();
  next_try_ = std::chrono::steady_clock::now() + kBetweenTries;
  return said;
}

void LabQueueEntry::joined(const std::string& host) {
  if (joined_.insert(host).second && link_) link_->send("joined " + host);
}

void LabQueueEntry::left(const std::string& host) {
  if (std::erase(hosts_, host) == 0) return;
  joined_.erase(host);
  let_go_.erase(host);
  if (start_on_ == host) start_on_.clear();
  if (link_) link_->send("left " + host);
}

void LabQueueEntry::let_go(const std::string& host) {
  // If the request closed a host that it has left, an agent of an older version would end its
  // entry.
  if (std::ranges::find(hosts_, host) == hosts_.end()) return;
  joined_.erase(host);
  if (start_on_ == host) start_on_.clear();
  let_go_.insert(host);
  if (link_) link_->send("closed " + host);
}

void LabQueueEntry::ask_to_start(const std::string& host) {
  start_on_ = host;
  if (link_) link_->send("start " + host);
}

void LabQueueEntry::come_back() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_try_) return;
  next_try_ = now + kBetweenTries;
  // The command whose streams we pass on waits for nothing here.
  auto link = LabAgentLink::open(path_, 0s);
  if (!link) return;
  link_ = *std::move(link);
  say_all();
}

void LabQueueEntry::say_all() {
  if (hosts_.empty()) return;
  const std::string wait = fmt::format("wait {} {} {} {}", mark_, lane_, fmt::join(hosts_, ","), gpus_);
  if (!runs_on_.empty()) return link_->send(fmt::format("{} {}", wait, runs_on_));
  link_->send(wait);
  for (const std::string& host : joined_) link_->send("joined " + host);
  for (const std::string& host : let_go_) link_->send("closed " + host);
  if (!start_on_.empty()) link_->send("start " + start_on_);
}

HostQueuesReport::HostQueuesReport(std::string request_words, const std::vector<std::string>& hosts,
                                   bool quiet)
    : request_words_(std::move(request_words)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {
  for (const std::string& name : hosts) hosts_.push_back({name});
}

void HostQueuesReport::begin() {
  if (begun_) return;
  begun_ = true;
  command::print_message(
      fmt::format("waiting for {} on {}; Ctrl-C leaves every queue", request_words_,
                  hosts_.size() == 1 ? hosts_.front().name : fmt::format("{} hosts", hosts_.size())));
}

std::string HostQueuesReport::all_lines() const {
  std::string text;
  for (const AtHost& host : hosts_)
    if (!host.stands.empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : " | ", host.name, host.stands);
  return text;
}

void HostQueuesReport::tell_standing(AtHost& host, const Standing& standing) {
  if (quiet_) return;
  const std::string position = standing.position <= 1 ? std::string("first in line")
                                                      : fmt::format("no. {} in line", standing.position);
  const std::string stands = fmt::format("{}, {}", position, printable(standing.reason));
  if (stands == host.stands) return;
  host.stands = stands;
  begin();
  if (!terminal_) return command::print_message(fmt::format("{}: {}", host.name, stands));
  if (!supervise::may_draw()) return;
  const auto width = command::Environment::style_of(STDERR_FILENO).width;
  command::mention(fmt::format("{}{}", view::kClearLine, view::cut(all_lines(), width - 1)));
}

void HostQueuesReport::tell_out(AtHost& host, const std::string& why) {
  host.stands.clear();
  if (quiet_) return;
  if (terminal_ && begun_ && supervise::may_draw()) command::mention(view::kClearLine);
  // The rest is told if no host is left.
  command::print_message(fmt::format("{} is left out: {}", host.name, why.substr(0, why.find('\n'))));
}

void HostQueuesReport::tell() {
  if (next_deadline()) return;
  for (AtHost& host : hosts_) {
    if (const auto standing = std::exchange(host.standing, {})) tell_standing(host, *standing);
    if (const auto why_out = std::exchange(host.why_out, {})) tell_out(host, *why_out);
  }
}

sys::Deadline HostQueuesReport::next_deadline() const {
  return std::chrono::steady_clock::now() < first_ ? std::optional(first_) : std::nullopt;
}

void HostQueuesReport::end() {
  if (begun_ && terminal_ && supervise::may_draw()) command::mention(view::kClearLine);
}

}  // namespace berth::hosts
