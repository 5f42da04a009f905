// The simulated machine as one process sees it: the scenario, re-read when its file changes, the
// fault rules with this process's counters, and the call log.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "machine/load.h"
#include "machine/scenario.h"

namespace berth::sim {

/// What the fault rules say about one call. Delays and hangs have happened when this is returned.
struct Verdict {
  int result = 0;           // not 0: the call ends with it
  unsigned extra_rows = 0;  // that a list is longer than the scenario says
  bool stale_count = false;
};

class World {
 public:
  /// The world that $BERTH_SIM names. Nothing is read before the first refresh().
  World();
  /// For a program that was told the file.
  explicit World(std::string file);

  /// Reads the file again if it changed. false: it cannot be read or is malformed; stderr was told,
  /// once.
  bool refresh();
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] Load load(unsigned device) const { return load_of(scenario_, device, place_); }

  /// Applies the fault rules to a call. `device` < 0: a call about no device. Sleeps, hangs or ends
  /// the process where a rule says so.
  Verdict judge(const char* call, int device);
  /// Writes the call to the log if the scenario wants one.
  void log(const char* call, int device, int slot, int result);

 private:
  struct Counter {
    std::uint64_t identity;
    std::uint64_t calls;
  };

  bool load_file(const struct stat& now);
  bool fail(const std::string& what);
  std::uint64_t count_call(const Fault& fault);

  std::string file_;
  Scenario scenario_;
  Place place_;
  std::string error_;
  std::string told_;
  struct stat seen_{};
  bool loaded_ = false;
  bool may_have_changed_unseen_ = false;
  std::vector<Counter> counters_;
};

}  // namespace berth::sim
