#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/agent/hosts_pages.h"
#include "berth/agent/peer.h"
#include "berth/render/server_metrics.h"

namespace berth::serve {

/// Everything that a hub answers. `own`: what is published of the hub's own machine where it is one of the
/// hosts, else null. Pure.
Published publish_hub(const std::vector<PostedHost>& posted, const render::HostsHead& head,
                      const std::string& hostname, const Published* own,
                      const render::PollCounts& polls = {});

/// Said of a host until it is asked for the first time.
inline constexpr std::string_view kNotAskedYet = "it has not been asked yet";

/// What is known of the host after its agent was asked for /api/v1/hosts: what it had told before stays,
/// where it tells nothing new. 304 is for a host that is up. Pure; the answer may be anything.
Host after_asking(const Host& before, const Result<Response>& answer, std::int64_t now_s);

/// What has become of a host, and how everybody is told of it.
struct HostNews {
  Host host;
  std::string entry;  ///< "": there is nothing new but when it was seen
};
/// The same as after_asking(). What would be much longer than the answer was is a fault of the agent.
HostNews news_after_asking(const Host& before, const Result<Response>& answer, std::int64_t now_s);
/// Where the hub itself could not deal with what it was told.
HostNews news_of_failure(const Host& before, std::string error);

/// The most that is read of an agent's answer where there are so many: each has room for a machine with
/// hundreds of processes.
std::size_t most_of_answer(std::size_t agents);

/// What all hosts together may take of memory. Each has its share, whatever the others do, and half is for
/// those that need more.
class HostShares {
 public:
  explicit HostShares(std::size_t hosts);
  /// What a host takes of the half that is common.
  std::size_t beyond_share(std::size_t entry_bytes) const;
  /// Whether there is room for it beside the others, which take so much of that half.
  bool has_room(std::size_t entry_bytes, std::size_t others_beyond) const;

 private:
  std::size_t share_;
};

/// All agents are asked at once first; then this spreads them over the interval, so that work and traffic are
/// even. `index`: of an agent among `count`.
std::chrono::nanoseconds pause_before_second(std::chrono::nanoseconds every, std::size_t index,
                                             std::size_t count);

/// How long to wait before a host is asked again that did not answer so many times in a row. `chance`: from 0
/// up to 1, so that hosts that went together are not asked together.
std::chrono::milliseconds pause_after(std::chrono::milliseconds every, unsigned failures, double chance);

}  // namespace berth::serve
