#include "berth/source/probe/probe.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "berth/core/snapshot_codec.h"
#include "berth/source/nvidia_smi/nvidia_smi_reader.h"
#include "berth/source/nvidia_smi/program.h"
#include "berth/source/nvml/nvml_reader.h"
#include "berth/source/probe/protocol.h"

namespace berth::source {
namespace {

/// False when nobody reads any more.
bool write_all(int out, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(out, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The next request's text; "" at the end of input.
std::string read_request(int in) {
  std::string text;
  while (!is_whole_record(text)) {
    char piece[1024];
    const ssize_t length = read(in, piece, sizeof piece);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return {};
    text.append(piece, static_cast<std::size_t>(length));
  }
  return text;
}

/// Sends a snapshot while it is read. Each step is announced before it is taken, together with what the step
/// before it gave, so whoever waits knows where it hangs and has everything up to there.
class Answer : public Sink {
 public:
  Answer(int out, int bell) : out_(out), bell_(bell) {}

  void head(const Snapshot& head) override { writer_.emplace(head); }
  void begin(const Stage& stage) override {
    write_progress(writer_->record(), stage);
    send(writer_->take());
  }
  void device(const Device& device) override { writer_->device(device); }
  void user(std::uint32_t uid, std::string_view name) override { writer_->user(uid, name); }
  void topology(const Topology& topology) override { writer_->topology(topology); }
  void note(std::string_view note) override { writer_->note(note); }

  /// Ends the answer. False when nobody reads it.
  bool finish(const Result<void>& outcome) {
    send(outcome ? std::move(*writer_).finish() : encode_error(outcome.error()));
    ring();
    return !unheard_;
  }

 private:
  /// A long answer has room only if its first part is taken meanwhile.
  void send(std::string_view text) {
    constexpr std::size_t kUnrung = 32 << 10;
    while (!text.empty() && !unheard_) {
      const std::string_view piece = text.substr(0, kUnrung);
      unheard_ = !write_all(out_, piece);
      text.remove_prefix(piece.size());
      unrung_ += piece.size();
      if (unrung_ >= kUnrung) ring();
    }
  }
  /// Fails where the input is no socket: then nobody sleeps on it.
  void ring() {
    unrung_ = 0;
    [[maybe_unused]] const ssize_t written = write(bell_, "\n", 1);
  }

  int out_;
  int bell_;
  std::size_t unrung_ = 0;
  bool unheard_ = false;
  std::optional<SnapshotWriter> writer_;
};

class Readers {
 public:
  explicit Readers(int listener) : nvidia_smi_(listener) {}

  /// Error: that of the library, which the first request will meet again.
  void expect(SourceKind kind) {
    if (kind != SourceKind::nvidia_smi) (void)nvml_.prepare();
  }

  Result<void> read(const ReadRequest& request, Sink& sink) {
    return choose(request.kind).read(request, sink);
  }

 private:
  Reader& choose(SourceKind kind) {
    if (kind == SourceKind::nvidia_smi) return nvidia_smi_;
    if (kind == SourceKind::automatic && !nvml_.has_library() && nvidia_smi::is_installed())
      return nvidia_smi_;
    return nvml_;
  }

  nvml::NvmlReader nvml_;
  nvidia_smi::NvidiaSmiReader nvidia_smi_;
};

}  // namespace

void run_probe(int in, int out, SourceKind expected, std::string_view version) {
  Readers readers(out);
  readers.expect(expected);
  for (;;) {
    const std::string text = read_request(in);
    if (text.empty()) _exit(0);
    Answer answer(out, in);
    const auto request = decode_request(text);
    const auto fit = request ? check_version(request->version, version) : std::unexpected(request.error());
    const Result<void> outcome = fit ? readers.read(*request, answer) : fit;
    if (!answer.finish(outcome)) _exit(0);
  }
}

}  // namespace berth::source
