#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "berth/lab_queue/lab_connections.h"

namespace berth::lab_queue {

/// How long the lab queue waits for requests that may join a host and do not: somebody has stopped
/// them, or means harm. Each is told `open` and `answer`, and answers `here` if it lives. If one of
/// these times was used up for a request, the user's next ones are waited for a moment only, for a
/// while: so many requests of one user cost the others hardly more than one. A request that is
/// passed over may still join.
class JoinPatience {
 public:
  using Instant = LabConnection::Instant;

  /// Takes the hosts for which this connection is waited for no longer out of those that it wants.
  void pass_over(LabConnection& connection, Instant now);
  /// When there is the next one to pass over. Instant::max(): nobody is waited for.
  Instant next(const std::vector<Connection>& connections) const;

 private:
  using ByUser = std::map<uid_t, Instant>;

  static bool is_awaited(const LabConnection& connection, const std::string& host);
  bool is_known(const LabConnection& connection, const std::string& host) const;
  Instant end_for(const LabConnection& connection, const std::string& host) const;

  // When such a time was used up for a request of the user.
  ByUser silent_{};
  ByUser late_{};
};

}  // namespace berth::lab_queue
