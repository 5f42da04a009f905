#pragma once

#include <chrono>
#include <string>

#include "berth/source/probe_source.h"
#include "berth/source/reader.h"
#include "berth/sys/child.h"
#include "berth/sys/descriptor.h"

namespace berth::source {

/// A running probe and the sockets to it.
class ProbeSession {
 public:
  /// `life` becomes the probe's standard error. Error: `failure` when it cannot be started.
  static Result<ProbeSession> start(const ProbeOptions& options, sys::Descriptor life);

  enum class Outcome {
    whole,   ///< the answer is there
    silent,  ///< nothing came for the deadline
    ended,   ///< the probe is gone, or is going
  };
  /// Sends a request and collects its answer. REQUIRES: the answer to the last one came.
  Outcome ask(const ReadRequest& request);
  /// After `silent`: true if the answer has come or the probe has ended since. Does not wait.
  bool is_over();

  /// The answer so far.
  const std::string& answer() const { return answer_; }
  /// Since when nothing has come, in seconds since the epoch.
  std::int64_t silent_since_s() const { return last_sign_wall_s_; }
  /// For `silent`: hands out the probe's standard error, of which the probe then has the only copy left.
  sys::Descriptor take_life() { return std::move(life_); }
  pid_t pid() const { return child_.pid(); }
  /// Asks nothing more: ends the probe, and waits that long for it to be gone.
  void end(std::chrono::milliseconds patience);
  /// How an `ended` probe ended. nullopt: it has not, though its socket is closed.
  std::optional<sys::Ending> ending();

 private:
  ProbeSession(sys::Child child, sys::Descriptor control, sys::Descriptor text, sys::Descriptor life)
      : child_(std::move(child)),
        control_(std::move(control)),
        text_(std::move(text)),
        life_(std::move(life)) {}
  void look_up_every(std::chrono::microseconds period);
  bool take_text();
  void note_sign_of_life();
  std::chrono::milliseconds patience() const;

  sys::Child child_;
  sys::Descriptor control_;  ///< requests go out, a byte comes in when there is something to take
  sys::Descriptor text_;     ///< the answer comes in
  sys::Descriptor life_;
  std::string answer_;
  std::chrono::milliseconds progress_deadline_{};
  std::chrono::milliseconds topology_deadline_{};
  std::chrono::nanoseconds last_sign_{};
  std::int64_t last_sign_wall_s_ = 0;
};

}  // namespace berth::source
