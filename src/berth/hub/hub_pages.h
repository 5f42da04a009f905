#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/agent/hosts_pages.h"
#include "berth/http/peer.h"
#include "berth/view/server_metrics.h"

namespace berth::hub {

/// Everything that a hub answers. `own`: what is published about the hub's own machine, if this is
/// one of the hosts, else null. Pure.
http::Published publish_hub(const std::vector<agent::PostedHost>& posted, const view::HostsHead& head,
                            const std::string& hostname, const http::Published* own,
                            const view::PollCounts& polls = {});

/// The error that a host has until it is asked for the first time.
inline constexpr std::string_view kNotAskedYet = "it has not been asked yet";

/// What is known of the host after its agent was asked for /api/v1/hosts. If the agent tells
/// nothing new, what it told before stays. 304 means that the host is up. Pure; the answer may be
/// anything.
Host after_asking(const Host& before, const Result<http::Response>& answer, std::int64_t now_s);

/// A host after an answer, and the text by which clients are told of it.
struct HostNews {
  Host host;
  std::string entry;  ///< "": nothing is new but the time when it was seen
};
/// The same as after_asking(). If the entry would be much longer than the answer was, that is an
/// error of the agent.
HostNews news_after_asking(const Host& before, const Result<http::Response>& answer, std::int64_t now_s);
/// The same for an answer that the hub could not process.
HostNews news_of_failure(const Host& before, std::string error);

/// How much of an agent's answer is read, in bytes, if there are this many agents. It is enough for
/// a machine with hundreds of processes.
std::size_t most_of_answer(std::size_t agents);

/// How much memory all hosts together may take. Half of it is divided into equal shares; the other
/// half is for hosts that need more than their share.
class HostShares {
 public:
  explicit HostShares(std::size_t hosts);
  /// How much a host takes of the common half.
  std::size_t beyond_share(std::size_t entry_bytes) const;
  /// Whether there is room for this entry, if the other hosts take `others_beyond` of the common
  /// half.
  bool has_room(std::size_t entry_bytes, std::size_t others_beyond) const;

 private:
  std::size_t share_;
};

/// The first time, all agents are asked at once. Then this pause spreads them over the interval, so
/// that work and traffic are even. `index`: of an agent among `count`.
std::chrono::nanoseconds pause_before_second(std::chrono::nanoseconds every, std::size_t index,
                                             std::size_t count);

/// How long to wait before asking a host again that did not answer `failures` times in a row.
/// `chance`: from 0 up to 1, so that hosts that failed at the same time are not asked at the same
/// time.
std::chrono::milliseconds pause_after(std::chrono::milliseconds every, unsigned failures, double chance);

}  // namespace berth::hub
