#include "berth/sys/process_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "berth/sys/process_identity.h"

namespace berth::sys {
namespace {

// The value of the SIGTERM that cancels a request; any that nobody else sends.
constexpr int kCancelled = 0x6274;

/// A process that was found by its pid. While a process has a descriptor, the descriptor means it
/// and no other: what was read of the pid in between is true of it, or it has ended and gets no
/// signal.
class FoundProcess {
 public:
  explicit FoundProcess(pid_t pid) : pid_(pid), process_(process_exit(pid)) {
    has_ended_ = !process_ && errno == ESRCH;
  }

  bool is(const IsMeant& is_meant) const { return !has_ended_ && is_meant(pid_); }

  bool send(int signal) const {
    if (process_) return ::syscall(SYS_pidfd_send_signal, process_.get(), signal, nullptr, 0) == 0;
    return ::kill(pid_, signal) == 0;
  }

  // Queued, which no signal to a group is: so a holder of a lease knows that it is meant, also if a
  // process of its own job asks.
  bool queue(int signal, int value) const {
    if (!process_) return ::sigqueue(pid_, signal, {.sival_int = value}) == 0;
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_int = value;
    return ::syscall(SYS_pidfd_send_signal, process_.get(), signal, &info, 0) == 0;
  }

 private:
  pid_t pid_;
  Descriptor process_;
  bool has_ended_ = false;
};

bool send_term(pid_t pid, int value, const IsMeant& is_meant) {
  const FoundProcess found(pid);
  if (!found.is(is_meant) || !found.queue(SIGTERM, value)) return false;
  found.send(SIGCONT);
  return true;
}

IsMeant this_very(const UniqueProcess& process) {
  return [process](pid_t) { return process_stat(process).has_value(); };
}

}  // namespace

bool send_signal(pid_t pid, int signal, const IsMeant& is_meant) {
  const FoundProcess found(pid);
  return found.is(is_meant) && found.send(signal);
}

bool send_signal(const UniqueProcess& process, int signal) {
  return send_signal(static_cast<pid_t>(process.pid), signal, this_very(process));
}

bool ask_to_end(pid_t pid, const IsMeant& is_meant) {
  return send_term(pid, 0, is_meant);
}

bool ask_to_end(const UniqueProcess& process) {
  return ask_to_end(static_cast<pid_t>(process.pid), this_very(process));
}

bool ask_to_cancel(pid_t pid, const IsMeant& is_meant) {
  return send_term(pid, kCancelled, is_meant);
}

bool ask_to_cancel(const UniqueProcess& process) {
  return ask_to_cancel(static_cast<pid_t>(process.pid), this_very(process));
}

bool is_cancel(const siginfo_t& signal) {
  return signal.si_signo == SIGTERM && signal.si_code == SI_QUEUE && signal.si_value.sival_int == kCancelled;
}

}  // namespace berth::sys
