#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "berth/source/probe_source.h"
#include "berth/source/reader.h"
#include "berth/sys/child.h"
#include "berth/sys/descriptor.h"

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

}  // namespace berth::source
