#include "berth/source/cuda/cuda_trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "berth/base/record_fields.h"
#include "berth/sys/clock.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"
#include "berth/sys/process.h"

namespace berth::source {

namespace {

constexpr std::string_view kWithContext = "context";
constexpr std::size_t kLongestTrial = 64 << 10;

constexpr auto kTrial = record_of<CudaTrial>("berth-cuda-trial", 1, [](auto& trial, auto&& field) {
  field("end", trial.end);
  field("error", trial.error);
  field("words", trial.words);
  field("context", trial.context);
  field("devices", trial.devices);
});

/// The calls of libcuda.so.1 that a trial makes.
class CudaStart {
 public:
  explicit CudaStart(const sys::DynamicLibrary& library) : library_(library) {}

  CudaTrial attempt(bool with_context) const {
    CudaTrial trial{.end = CudaTrial::End::starts};
    int count = 0;
    int device = 0;
    void* context = nullptr;
    note(trial, call<unsigned>("cuInit", 0U));
    note(trial, call<int*>("cuDeviceGetCount", &count));
    trial.devices = count > 0 ? static_cast<unsigned>(count) : 0;
    if (!with_context || trial.end != CudaTrial::End::starts) return trial;
    trial.context = true;
    note(trial, call<int*, int>("cuDeviceGet", &device, 0));
    note(trial, call<void**, int>("cuDevicePrimaryCtxRetain", &context, device));
    return trial;
  }

 private:
  /// CUDA's answer. One that lacks the function is too old to say more, and nothing is held against
  /// it.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(library_.symbol(name));
    return function == nullptr ? 0 : function(arguments...);
  }
  void note(CudaTrial& trial, int answer) const {
    if (answer == 0 || trial.end != CudaTrial::End::starts) return;
    const char* words = nullptr;
    (void)call<int, const char**>("cuGetErrorString", answer, &words);
    trial.end = CudaTrial::End::refused;
    trial.error = answer;
    trial.words = words != nullptr ? words : "unknown";
  }

  const sys::DynamicLibrary& library_;
};

/// All that the child writes until it ends. False: it still runs at the deadline.
bool read_until(int output, std::chrono::nanoseconds deadline, std::string& text) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - sys::monotonic_now()).count();
    pollfd watched{.fd = output, .events = POLLIN, .revents = 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || text.size() > kLongestTrial) return false;
    char piece[1024];
    const ssize_t length = read(output, piece, sizeof piece);
    if (length <= 0) return true;
    text.append(piece, static_cast<std::size_t>(length));
  }
}

}  // namespace

std::string trouble_of(const CudaTrial& trial) {
  if (trial.end == CudaTrial::End::starts) return "";
  const std::string reason = trial.end == CudaTrial::End::refused
                                 ? fmt::format("error {} ({})", trial.error, trial.words)
                                 : trial.words;
  return trial.context ? fmt::format("CUDA makes no context on it: {}", reason)
                       : fmt::format("CUDA does not start: {}", reason);
}

Result<CudaTrial> try_cuda(const CudaTrialOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return sys::fail_errno("making a pipe to a trial of CUDA");
  const sys::Descriptor output(ends[0]);
  sys::Descriptor theirs(ends[1]);
  sys::Command command{.program = options.program,
                       .arguments = options.arguments,
                       .output = theirs.get(),
                       .environment = options.environment};
  if (options.with_context) command.arguments.emplace_back(kWithContext);
  auto child = sys::Child::spawn(command);
  if (!child) return std::unexpected(context(child.error(), "starting a trial of CUDA"));
  theirs.close();
  std::string text;
  const bool answered = read_until(output.get(), sys::monotonic_now() + options.patience, text);
  // Its context ends with it, which takes the driver a moment. Whoever looked meanwhile would see a
  // process without a lease.
  const auto ending = answered ? child->wait(options.patience) : std::nullopt;
  if (!ending) {
    child->kill(SIGKILL);
    (void)child->wait(std::chrono::milliseconds(100));
    return CudaTrial{
        .end = CudaTrial::End::hangs,
        .words = fmt::format("no {} within {} s", answered ? "end" : "answer",
                             std::chrono::duration_cast<std::chrono::seconds>(options.patience).count())};
  }
  if (auto trial = kTrial.decode(text)) return trial;
  return CudaTrial{.end = CudaTrial::End::crashes, .words = "the trial ended with " + sys::to_text(*ending)};
}

void run_cuda_trial(bool with_context) {
  CudaTrial trial;
  if (const auto library = sys::DynamicLibrary::open("libcuda.so.1")) {
    trial = CudaStart(*library).attempt(with_context);
  } else {
    trial.words = library.error().message;
  }
  const std::string text = kTrial.encode(trial);
  // Shorter than what a pipe takes in one piece.
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
  _exit(0);
}

}  // namespace berth::source
