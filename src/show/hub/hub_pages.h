#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/agent/hosts_pages.h"
#include "berth/http/server_to_ask.h"
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

}  // namespace berth::hub
