#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/publish.h"
#include "berth/receipts/sampler.h"
#include "berth/source/source.h"

namespace berth::agent {

/// The name by which the machine calls itself.
std::string own_hostname();

/// Looks at this machine again and again, with one probe, in a thread of its own. A look lasts as
/// long as the driver hangs, and the thread that serves the clients must not wait for it.
class Watcher {
 public:
  using Publish = std::function<void(std::shared_ptr<const http::Published>)>;
  /// Whether the history works, and what it last told of the hours before.
  struct Remembered {
    view::HistoryHealth health;
    std::shared_ptr<const RecordedLeases> past;
  };
  /// Records a look in the history. `every`: the time until the next look.
  using Remember = std::function<Remembered(const Result<leasing::World>& look, std::chrono::seconds every)>;

  /// Each look is given to both functions, in that thread.
  Watcher(source::ProbeOptions options, Remember remember, Publish publish);

  /// One look, in this thread. If the next one is not soon, the driver is closed until then.
  void look();
  /// Goes on looking until the process ends, because a look that hangs could not be ended. To be
  /// called once, after the first look.
  void go_on();
  /// May be called in any thread. Counts from the next look on.
  void set_interval(std::chrono::seconds every);

 private:
  Result<source::Source*> probe();
  Result<leasing::World> look_at_machine();
  [[noreturn]] void keep_looking();

  source::ProbeOptions options_;
  Remember remember_;
  Publish publish_;
  std::optional<source::ProbeSource> probe_;
  std::string hostname_;
  LeaseCounter counter_;
  IdleTimes idle_;
  receipts::LookTeller samplers_;
  std::vector<std::string> warnings_;       // of the last look
  bool has_lease_ = false;                  ///< at the last look somebody had a whole GPU
  std::chrono::nanoseconds next_energy_{};  ///< by the boot clock
  std::uint64_t number_;                    ///< of the look; begins above the numbers of earlier agents
  std::atomic<std::chrono::seconds> every_{std::chrono::seconds(1)};
  std::chrono::seconds next_look_{1};  ///< after the last one, as that look has told the history
};

}  // namespace berth::agent
