#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/api/lease_messages.h"
#include "berth/base/error.h"
#include "berth/hosts/model/host_offer.h"

// The messages that go over ssh between `berth … --anywhere`, the caller, and `berth __envoy`,
// which ssh starts on a host. docs/machines.md has their order. All are records
// (src/core/base/record.h). The caller asks with an EnvoyAsk and then an api::LeaseAsk. The
// envoy answers with EnvoyMessages.
namespace berth::hosts {

/// What the envoy is to do.
enum class EnvoyMode {
  look,   ///< describe the machine and its queue
  offer,  ///< say what the request could have, and wait for the word to join
  run,    ///< join the queue at once
  call,   ///< call `berth WORDS`, and give what it prints
};
constexpr auto words_of(EnvoyMode) {
  return std::to_array<std::string_view>({"look", "offer", "run", "call"});
}

struct EnvoyAsk {
  EnvoyMode mode = EnvoyMode::look;
  std::string folder;              ///< in which the command runs
  std::vector<std::string> words;  ///< the command
  std::string ids;                 ///< --ids; "uuid", or "" for the index
  std::string source;              ///< --source
  std::string token;               ///< nobody else knows it; marks the end of the command in its error stream
  bool end_with_command = false;
  bool shell = false;    ///< the command is the user's shell there; `words` is empty
  bool patient = false;  ///< it waits for ever, whatever the host's site file says
  std::string origin{};  ///< as of a ticket
  std::string near{};    ///< a path: the offer says whether it is there; "": none

  bool operator==(const EnvoyAsk&) const = default;
};

/// The first message of an envoy.
struct EnvoyHello {
  std::string version;  ///< of its Berth

  bool operator==(const EnvoyHello&) const = default;
};

/// `berth list --json` and `berth queue --json` of the host.
struct MachineReport {
  std::string listing;
  std::string queue;
};

/// What `berth WORDS` printed on the host.
struct Called {
  int exit_status = 0;  ///< or 128 plus the signal that killed it
  std::string out, err;

  bool operator==(const Called&) const = default;
};

/// The envoy has got the yes. What follows is the command's output.
struct CommandBegun {
  bool operator==(const CommandBegun&) const = default;
};

/// Somebody has cancelled the request on this host.
struct Cancelled {
  bool operator==(const Cancelled&) const = default;
};

/// The lease messages have their meaning as between a host program and `berth __lease`: Standing
/// while it waits, then a Snapshot and LeaseGranted, or LeaseRefused.
using EnvoyMessage =
    std::variant<EnvoyHello, MachineReport, Called, Offer, CommandBegun, Cancelled, api::LeaseMessage>;

std::string encode(const EnvoyAsk& ask);
Result<EnvoyAsk> decode_envoy_ask(std::string_view text);

std::string encode(const EnvoyMessage& message);
/// Error: `failure`. REQUIRES: nothing; the text may be anything.
Result<EnvoyMessage> decode_envoy_message(std::string_view text);

/// The messages of the caller that have only a name.
enum class CallerWord { join, yes };
std::string encode(CallerWord word);
std::optional<CallerWord> decode_caller_word(std::string_view text);

/// Where in the text the envoy's hello begins. Before it may be what a login shell prints. npos:
/// nowhere yet.
std::size_t find_hello(std::string_view text);

/// How the command ended: the last message in its error stream.
std::string encode(const ProcessEnd& end, std::string_view token);

/// Finds the message about the command's end in its error stream, and takes it out.
class EndFinder {
 public:
  explicit EndFinder(std::string_view token);
  /// The part of the stream that is the command's. A text that may be the beginning of the mark is
  /// kept until more comes.
  std::string feed(std::string_view text);
  /// The text that was kept, to be called when no more comes.
  std::string rest();
  const std::optional<ProcessEnd>& end() const { return end_; }

 private:
  std::string mark_;
  std::string kept_;
  std::optional<ProcessEnd> end_;
};

/// What the caller sends to a command that has begun: standard input, the end of the input, and
/// signals.
enum class FrameKind : char { input = 'i', end_of_input = 'e', signal = 's' };
struct Frame {
  FrameKind kind = FrameKind::input;
  std::string text;  ///< of a signal: its number
};
std::string encode(const Frame& frame);
/// Takes the first whole frame from the text. nullopt: there is none yet. Error: `failure` for an
/// unknown kind of frame.
Result<std::optional<Frame>> take_frame(std::string& text);

}  // namespace berth::hosts
