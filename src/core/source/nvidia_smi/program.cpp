#include "berth/source/nvidia_smi/program.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "berth/base/fail.h"
#include "berth/source/nvml/outcome.h"
#include "berth/sys/child.h"
#include "berth/sys/descriptor.h"
#include "berth/sys/system_error.h"

namespace berth::nvidia_smi {
namespace {

constexpr std::size_t kLongestReport = 64 << 20;

/// Waits for output. False: the listener is gone.
bool wait_for_output(int output, int listener) {
  // Errors and hang-ups are reported unasked, and they are all that is to be known of the listener.
  pollfd watched[] = {{.fd = output, .events = POLLIN, .revents = 0},
                      {.fd = listener, .events = 0, .revents = 0}};
  while (poll(watched, 2, -1) < 0 && errno == EINTR) continue;
  return watched[1].revents == 0;
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

bool is_installed() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (access((std::string(rest.substr(0, colon)) + "/nvidia-smi").c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

Result<Printed> run(const std::vector<std::string>& arguments, int listener) {
  // Numbers with a decimal point, and messages that can be recognised.
  setenv("LC_ALL", "C", 1);
  // The parent of this process may have set SIGCHLD to be ignored, and then the end of a child is
  // not reported.
  signal(SIGCHLD, SIG_DFL);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return sys::fail_errno("making a pipe to nvidia-smi");
  const sys::Descriptor output(ends[0]);
  sys::Descriptor theirs(ends[1]);
  auto child = sys::Child::spawn(
      {.program = "nvidia-smi", .arguments = arguments, .output = theirs.get(), .error = theirs.get()});
  if (!child)
    return fail(ErrorCode::no_driver,
                "no NVIDIA driver: nvidia-smi cannot be started (" + child.error().message + ")");
  theirs.close();

  Printed printed;
  for (;;) {
    if (!wait_for_output(output.get(), listener)) {
      child->kill(SIGKILL);
      return fail(ErrorCode::failure, "nvidia-smi was stopped: nobody waits for it any more");
    }
    char piece[16 << 10];
    const ssize_t length = read(output.get(), piece, sizeof piece);
    if (length == 0) break;
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) {
      auto failed = sys::fail_errno("reading what nvidia-smi prints");
      child->kill(SIGKILL);
      return failed;
    }
    printed.text.append(piece, static_cast<std::size_t>(length));
    if (printed.text.size() > kLongestReport) {
      child->kill(SIGKILL);
      return fail(ErrorCode::failure, "nvidia-smi was stopped: it prints more than {} MiB",
                  kLongestReport >> 20U);
    }
  }
  const auto ending = child->wait(std::chrono::seconds(10));
  if (!ending || ending->signal != 0) {
    return fail(ErrorCode::failure,
                "nvidia-smi ended with " + (ending ? sys::to_text(*ending) : "its output still to come"));
  }
  printed.status = ending->exit_status;
  return printed;
}

Error error_of(const Printed& printed) {
  // Its statuses are the driver's own numbers, but not all numbers fit a status.
  const std::string_view text = printed.text;
  if (text.contains("version mismatch")) return nvml::error_of(nvml::kVersionMismatch);
  if (text.contains("Unknown Error")) return nvml::error_of(nvml::kUnknown);
  switch (static_cast<nvml::Return>(printed.status)) {
    case nvml::kNoPermission:
    case nvml::kDriverNotLoaded:
    case nvml::kLibraryNotFound:
      return nvml::error_of(static_cast<nvml::Return>(printed.status));
    default:
      return {ErrorCode::no_driver, "nvidia-smi failed with exit status " + std::to_string(printed.status) +
                                        ": " + std::string(first_line(text))};
  }
}

}  // namespace berth::nvidia_smi
