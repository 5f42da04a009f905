#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "berth/queue/standing.h"
#include "berth/sys/clock.h"

namespace berth::hosts {

/// Tells on the error stream how a wait in the queues of several hosts goes: on a terminal one live
/// line, elsewhere a line at each change. For the first second it tells nothing: often a host
/// grants the request within this time.
class HostQueuesReport {
 public:
  /// `hosts`: their names. `quiet`: it tells nothing.
  HostQueuesReport(std::string request_words, const std::vector<std::string>& hosts, bool quiet);

  /// The request stands like this on this host.
  void show(std::size_t host, Standing standing) { hosts_[host].standing = std::move(standing); }
  /// What was not told yet of how it stands there does not hold any more.
  void forget(std::size_t host) { hosts_[host].standing.reset(); }
  /// The request no longer waits on this host.
  void drop(std::size_t host, std::string why) { hosts_[host].why_out = std::move(why); }
  /// Tells what was not told yet, if it is time.
  void tell();
  /// When it is. nullopt: since a while.
  sys::Deadline next_deadline() const;
  /// Clears the live line.
  void end();

 private:
  struct AtHost {
    std::string name;
    std::string stands{};  ///< how it stands there, as told last; "": it does not wait there
    // What was not told yet.
    std::optional<Standing> standing{};
    std::optional<std::string> why_out{};
  };

  void tell_standing(AtHost& host, const Standing& standing);
  void tell_out(AtHost& host, const std::string& why);
  void begin();
  std::string all_lines() const;

  std::string request_words_;
  std::vector<AtHost> hosts_{};
  std::chrono::steady_clock::time_point first_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  bool quiet_;
  bool terminal_;
  bool begun_ = false;
};

}  // namespace berth::hosts
