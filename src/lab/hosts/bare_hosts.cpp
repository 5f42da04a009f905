#include "berth/hosts/bare_hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "berth/sys/child.h"
#include "berth/sys/clock.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/system_error.h"

namespace berth::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The driver may be slow to answer, and a listing does not wait for it for ever.
constexpr auto kPatienceForBare = 10s;
// An ssh server leaves a program alone whose connection has ended. So one that hangs ends itself.
constexpr std::string_view kBareProgram = "timeout -k 5 15 nvidia-smi";
constexpr std::chrono::milliseconds kPatienceForBareEnd = 2s;

/// An ssh that runs nvidia-smi. It ends with the call.
class BareCall {
 public:
  static Result<BareCall> start(const SshProgram& ssh, const LabHost& host) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return sys::fail_errno("making a pipe for ssh");
    sys::Descriptor from(ends[0]);
    const sys::Descriptor theirs(ends[1]);
    sys::Command command =
        ssh_call(ssh, {.name = host.name, .program = std::string(kBareProgram)}, kBareQuery);
    command.output = theirs.get();
    BERTH_LET(auto child, sys::Child::spawn(command));
    return BareCall(std::move(child), std::move(from));
  }

  int descriptor() const { return from_.get(); }
  bool goes_on() const { return bool(from_); }

  void read_some() {
    std::array<char, 4096> piece{};
    const ssize_t got = ::read(from_.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) return;
    if (got > 0) text_.append(piece.data(), static_cast<std::size_t>(got));
    if (got <= 0 || text_.size() > kLongestBareAnswer) from_.close();
  }

  /// After its output has ended, or as much of it as is read.
  Result<std::vector<BareDevice>> answer() {
    if (from_ || text_.size() > kLongestBareAnswer) {
      child_.kill(SIGTERM);
      return fail(ErrorCode::failure,
                  from_ ? "its nvidia-smi does not answer" : "its nvidia-smi says too much");
    }
    const auto ending = child_.wait(kPatienceForBareEnd);
    if (!ending) child_.kill(SIGTERM);
    if (ending != ProcessEnd{}) return fail(ErrorCode::failure, "it has no nvidia-smi that works");
    return bare_devices_from_csv(text_);
  }

 private:
  BareCall(sys::Child child, sys::Descriptor from) : child_(std::move(child)), from_(std::move(from)) {}

  sys::Child child_;
  sys::Descriptor from_;
  std::string text_;
};

/// Until all have ended, or the time is over.
void listen_to(std::vector<Result<BareCall>>& calls) {
  const auto until = Clock::now() + kPatienceForBare;
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<BareCall*> open;
    for (auto& call : calls) {
      if (!call || !call->goes_on()) continue;
      polled.push_back({call->descriptor(), POLLIN, 0});
      open.push_back(&*call);
    }
    const int left_ms = sys::poll_timeout(until);
    if (open.empty() || left_ms == 0) return;
    if (::poll(polled.data(), polled.size(), left_ms) <= 0) continue;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (polled[i].revents != 0) open[i]->read_some();
  }
}

}  // namespace

std::vector<Result<std::vector<BareDevice>>> ask_bare_hosts(const SshProgram& ssh,
                                                            const std::vector<LabHost>& hosts) {
  std::vector<Result<BareCall>> calls;
  for (const LabHost& host : hosts) calls.push_back(BareCall::start(ssh, host));
  listen_to(calls);
  std::vector<Result<std::vector<BareDevice>>> answers;
  for (auto& call : calls) {
    if (call)
      answers.push_back(call->answer());
    else
      answers.push_back(std::unexpected(call.error()));
  }
  return answers;
}

}  // namespace berth::hosts
