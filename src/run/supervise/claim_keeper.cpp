// The keeper takes the lease itself rather than being handed one, so that the ticket names the
// process that holds it from the start.

#include "berth/supervise/claim_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <utility>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/receipts/make_receipt.h"
#include "berth/supervise/lease_watch.h"
#include "berth/supervise/run.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::supervise {
namespace {

using namespace std::chrono_literals;

/// The conditions that end a keeper.
struct Ends {
  sys::Descriptor process;  ///< empty: no process does
  sys::Descriptor clock;
  sys::Descriptor signals;
};

Result<sys::Descriptor> catch_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  sys::Descriptor signals(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!signals) return sys::fail_errno("preparing the process that holds the lease");
  return signals;
}

// Inherited descriptors: pipes on which others wait, an outer lease. All descriptors of our own are
// close-on-exec.
void close_what_is_not_ours() {
  const sys::Descriptor own(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto entries = sys::list_directory(own.get());
  if (!entries) return;
  for (const sys::DirectoryEntry& entry : *entries) {
    int descriptor = -1;
    std::from_chars(entry.name.data(), entry.name.data() + entry.name.size(), descriptor);
    const int flags = descriptor > STDERR_FILENO ? ::fcntl(descriptor, F_GETFD) : -1;
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ::close(descriptor);
  }
}

Result<void> leave_caller() {
  const sys::Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return sys::fail_errno("opening /dev/null");
  ::setsid();
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing.get(), standard);
  close_what_is_not_ours();
  // A file system that is somebody's working directory cannot be unmounted.
  if (::chdir("/") != 0) return sys::fail_errno("leaving the working directory");
  ::prctl(PR_SET_NAME, kKeeperName.data());
  ::prctl(PR_SET_PDEATHSIG, 0);
  return {};
}

void start_clock(const Ends& ends, std::optional<std::chrono::milliseconds> left) {
  if (!left) return;
  // 0 would mean never.
  const std::chrono::nanoseconds after = std::max<std::chrono::nanoseconds>(*left, 1ns);
  itimerspec once{};
  once.it_value = {after / 1s, (after % 1s).count()};
  ::timerfd_settime(ends.clock.get(), 0, &once, nullptr);
}

// The keeper has no terminal; its user has, mostly.
void tell_on_terminal(pid_t process, const std::string& sentence) {
  sys::write_to_terminal_of(process, fmt::format("berth: {}", printable(sentence)));
}

// A shell that does not look itself goes on with the variables.
std::string what_is_left(const KeptLease& kept) {
  if (kept.clears_variables) return "";
  return "; unset BERTH_LEASE and the variable that shows its GPUs, or what is started next runs on them";
}

// The process that has sent the signal.
std::optional<sys::Sender> sender_of(const sys::Descriptor& signals) {
  signalfd_siginfo info{};
  if (::read(signals.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return sys::Sender{info.ssi_uid, static_cast<pid_t>(info.ssi_pid)};
}

void tell_others(const KeptLease& kept, NoticeEvent event, const std::string& words) {
  if (kept.tell_others) kept.tell_others(event, words);
}

// Gives how it was released. A user who has released it needs no message.
std::string tell_who_released(const sys::Descriptor& signals, KeptLease& kept) {
  const ReleaseCall& call = kept.lease.release_call();
  const auto who = who_released(call, sender_of(signals));
  if (!who) return "was released";
  if (kept.told && (call.uid != ::geteuid() || !call.because.empty()))
    tell_on_terminal(*kept.told, fmt::format("the lease {} was released by {}{}", kept.lease.short_name(),
                                             *who, what_is_left(kept)));
  return fmt::format("was released by {}", *who);
}

std::string time_is_over(const LeaseClock& clock) {
  return fmt::format("its time of {} is over", time_for_people(clock.time().count()));
}

// True: the time of the lease is over.
bool warn_or_end(LeaseClock& clock, const KeptLease& kept) {
  const TimeDue now_due = clock.due_now();
  if (now_due == TimeDue::warn) {
    if (kept.told) tell_on_terminal(*kept.told, warning_of(clock.time(), kept.lease.short_name()));
    const auto left = std::chrono::ceil<std::chrono::seconds>(clock.left().value_or(0ms));
    tell_others(kept, NoticeEvent::time,
                fmt::format("its time is over in {}", duration_for_people(left.count())));
  }
  if (now_due != TimeDue::over) return false;
  if (kept.told)
    tell_on_terminal(*kept.told, fmt::format("the lease {} has ended: {}{}", kept.lease.short_name(),
                                             time_is_over(clock), what_is_left(kept)));
  return true;
}

// Nobody but its user ends it before its time, and what ran in it ended by itself.
receipts::ReceiptKeeping leave_receipt(const KeptLease& kept) {
  const auto lasted = sys::milliseconds_since_boot() - granted_at(kept.lease.ticket());
  const RunEnd end{.lasted = std::chrono::milliseconds(std::max<std::int64_t>(lasted, 0))};
  const auto nothing = [] { return std::optional<Snapshot>(); };
  const Receipt receipt =
      receipts::receipt_of(kept.lease.ticket(), kept.lease.devices(), end, kept.sampling->samples(), nothing,
                           receipts::read_at_end(kept.sampling->source()));
  return {receipt, ""};
}

// Gives why it ends.
std::string wait_for_end(const Ends& ends, LeaseClock& clock, KeptLease& kept) {
  for (;;) {
    start_clock(ends, clock.left());
    const auto next = earlier(kept.sampling ? kept.sampling->next() : std::nullopt,
                              kept.mask ? kept.mask->next() : std::nullopt);
    const int patience = sys::poll_timeout(next);
    std::array<pollfd, 3> ready{{{ends.process.get(), POLLIN, 0},  // -1 is ignored
                                 {ends.clock.get(), POLLIN, 0},
                                 {ends.signals.get(), POLLIN, 0}}};
    const int came = ::poll(ready.data(), ready.size(), patience);
    if (kept.sampling) kept.sampling->go_on();
    if (const auto renumbered = kept.mask ? kept.mask->go_on() : std::nullopt; renumbered && kept.told)
      tell_on_terminal(*kept.told, *renumbered);
    if (came <= 0) continue;
    if (ready[2].revents != 0) return tell_who_released(ends.signals, kept);
    if (ready[0].revents != 0) return "ended with its process";
    if (warn_or_end(clock, kept)) return fmt::format("has ended: {}", time_is_over(clock));
  }
}

// A process that does not handle this signal ignores it. A pidfd never means another process.
void ask_to_look(const sys::Descriptor& process) {
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGURG, nullptr, 0);
}

void tell_status(const sys::Descriptor& told, int status) {
  const auto byte = static_cast<unsigned char>(status);
  [[maybe_unused]] const ssize_t written = ::write(told.get(), &byte, 1);
}

// Gives the status, when there is nothing to keep.
Result<command::Output> keep(Ends ends, const std::function<Result<KeptLease>()>& take,
                             const sys::Descriptor& told) {
  BERTH_LET(auto kept, take());
  LeaseClock clock(kept.lease);
  ends.clock = sys::Descriptor(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC));
  if (!ends.clock) return sys::fail_errno("starting the clock of the lease");
  BERTH_LET(auto signals, catch_signals());
  ends.signals = std::move(signals);
  command::mention(std::exchange(kept.answer.err, ""));
  const int status = report(kept.answer);
  // An answer that nobody could read gives nobody a lease.
  if (status != kept.answer.status) return command::Output{.status = status};
  BERTH_DO(leave_caller());
  tell_status(told, status);
  kept.lease.end_watch();
  tell_others(kept, NoticeEvent::start, "began on GPU " + kept.lease.labels());
  const std::string end = wait_for_end(ends, clock, kept);
  std::optional<receipts::ReceiptKeeping> receipt;
  if (kept.sampling) receipt = leave_receipt(kept);
  // A home may not answer: the GPU waits for no disk.
  kept.lease.release();
  if (kept.clears_variables) ask_to_look(ends.process);
  if (receipt) (void)receipt->trouble();
  tell_others(kept, NoticeEvent::end, end);
  ::_exit(0);
}

[[noreturn]] void be_keeper(Ends ends, const std::function<Result<KeptLease>()>& take,
                            const sys::Descriptor& told, pid_t parent) {
  // Until there is a lease the keeper is a part of the command that waits for it.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  const auto ended = keep(std::move(ends), take, told);
  const int status = report(ended);
  tell_status(told, status);
  ::_exit(status);
}

}  // namespace

Result<command::Output> leave_keeper(command::Environment& environment, std::optional<pid_t> process,
                                     const std::function<Result<KeptLease>()>& take) {
  Ends ends;
  if (process && !(ends.process = sys::process_exit(*process)))
    return fail(ErrorCode::failure, "there is no process {}", *process);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return sys::fail_errno("making a pipe");
  const sys::Descriptor heard(pipe[0]);
  sys::Descriptor told(pipe[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return sys::fail_errno("starting the process that holds the lease");
  if (child == 0) be_keeper(std::move(ends), take, told, parent);
  told.close();
  // Ours are copies of its pipes, which would keep it alive.
  environment.end_probe();
  unsigned char status = 0;
  if (::read(heard.get(), &status, 1) == 1) return command::Output{.status = status};
  int ending = 0;
  ::waitpid(child, &ending, 0);
  if (WIFSIGNALED(ending)) sys::end_like({0, WTERMSIG(ending)});
  return fail(ErrorCode::failure, "the process that was to hold the lease has ended");
}

}  // namespace berth::supervise
