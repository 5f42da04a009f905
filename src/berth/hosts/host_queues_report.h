#pragma once

#include <string>
#include <vector>

#include "berth/queue/standing.h"

namespace berth::hosts {

/// Tells on the error stream how a wait in the queues of several hosts goes: on a terminal one live line,
/// elsewhere a line at each change.
class HostQueuesReport {
 public:
  /// `hosts`: their names. `quiet`: it tells nothing.
  HostQueuesReport(std::string request_words, std::vector<std::string> hosts, bool quiet);

  /// The request stands like this on this host.
  void show(std::size_t host, const Standing& standing);
  /// The request no longer waits on this host.
  void drop(std::size_t host, const std::string& why);
  /// Clears the live line.
  void end();

 private:
  void begin();
  std::string all_lines() const;

  std::string request_words_;
  std::vector<std::string> hosts_;
  std::vector<std::string> stands_;  ///< how it stands on each host, as told last; "": it does not wait there
  bool quiet_;
  bool terminal_;
  bool begun_ = false;
};

}  // namespace berth::hosts
