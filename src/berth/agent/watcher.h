#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/publish.h"
#include "berth/source/probe_source.h"

namespace berth::serve {

/// As the machine calls itself.
std::string own_hostname();

/// Looks at this machine again and again, with one probe, in a thread of its own: a look may take as long as
/// the driver hangs, and what serves the clients must not wait for it.
class Watcher {
 public:
  using Publish = std::function<void(std::shared_ptr<const Published>)>;
  /// Remembers a look, and says how that goes. `every`: when the next is to be expected.
  using Remember =
      std::function<render::HistoryHealth(const Result<leasing::World>& look, std::chrono::seconds every)>;

  /// Each look is given to both, in that thread.
  Watcher(source::ProbeOptions options, Remember remember, Publish publish);

  /// One look, in this thread.
  void look();
  /// Goes on looking until the process ends: a look that hangs could not be ended. Called once.
  void go_on(std::chrono::seconds every);
  /// From any thread: from the next look on.
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
  std::vector<std::string> warnings_;  // of the last look
  std::uint64_t number_;               ///< of the look; from one that no agent before reached
  std::atomic<std::chrono::seconds> every_{std::chrono::seconds(1)};
};

}  // namespace berth::serve
