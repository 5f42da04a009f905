#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "berth/device/device.h"
#include "berth/source/source.h"
#include "berth/sys/file.h"
#include "berth/sys/job_process.h"

namespace berth::source {

/// A running probe and the sockets to it.
class ProbeLink {
 public:
  /// Error: `failure` if the probe cannot be started.
  static Result<ProbeLink> start(const ProbeOptions& options);

  enum class Outcome {
    whole,   ///< the answer is complete
    silent,  ///< nothing came until the deadline
    ended,   ///< the probe has ended, or is ending: also one that was found stopped
  };
  /// Sends a request, calls `meanwhile`, and collects the answer. REQUIRES: the answer to the last
  /// request has come.
  Outcome ask(const ReadRequest& request, const std::function<void()>& meanwhile);
  /// After `silent`: true if the answer has come or the probe has ended since. Does not wait.
  bool is_over();

  /// The answer so far.
  const std::string& answer() const { return answer_; }
  /// The time since which nothing has come, in seconds since the epoch.
  std::int64_t silent_since_s() const { return last_sign_wall_s_; }
  /// A socket on which the probe only writes. Of what is sent there, the probe takes nothing, and
  /// the kernel throws it away when the probe ends.
  int unread_by_probe() const { return text_.get(); }
  pid_t pid() const { return child_.pid(); }
  /// Ends the probe, and waits this long for its end. No more questions afterwards.
  void end(std::chrono::milliseconds patience);
  /// How the probe ended. nullopt: it has not ended yet, though its socket is closed.
  std::optional<ProcessEnd> ending();

 private:
  ProbeLink(sys::Child child, sys::Descriptor control, sys::Descriptor text)
      : child_(std::move(child)), control_(std::move(control)), text_(std::move(text)) {}
  void look_up_every(std::chrono::microseconds period);
  bool take_text();
  Outcome stopped_or_silent();
  void note_sign_of_life();
  std::chrono::milliseconds patience() const;

  sys::Child child_;
  sys::Descriptor control_;  ///< requests go out; a byte comes in if there is something to read
  sys::Descriptor text_;     ///< the answer comes in
  std::string answer_;
  std::chrono::milliseconds progress_deadline_{};
  std::chrono::milliseconds topology_deadline_{};
  std::chrono::nanoseconds last_sign_{};
  std::int64_t last_sign_wall_s_ = 0;
};

/// Remembers, for all processes of this user, that a probe of the user hangs in the driver. It is
/// one file in the state directory, and it is locked as long as the probe lives. A probe that hangs
/// can take nothing. So the open file, with its lock, is sent to a socket of the probe, where
/// nobody reads: the kernel keeps it there, and closes it when the probe ends, in whatever way.
class StuckProbe {
 public:
  /// `source`: says which probe, if a user has several; each may hang by itself.
  StuckProbe(std::string state_directory, std::string_view source)
      : directory_(std::move(state_directory)), source_(source) {}

  /// What a probe that still hangs had told before it stopped answering, marked stale. nullopt: no
  /// probe hangs.
  std::optional<Snapshot> remembered() const;

  /// Makes the file, with what is known. `socket`: a stream to the probe that hangs, which the
  /// probe does not read. If the probe has ended, or the directory cannot have a file, nothing is
  /// remembered.
  void remember(int socket, const Snapshot& known) const;
  void forget() const;

 private:
  std::string path() const;
  /// That of this user's file: if another user has taken the name, one that nobody could know.
  std::string own_path() const;
  std::string directory_;
  std::string source_;
};

}  // namespace berth::source
