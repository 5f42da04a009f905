#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "berth/http/answer.h"
#include "berth/machines/host.h"
#include "berth/view/hosts_json.h"

namespace berth::agent {

/// What has changed in a host's entry since the event `since` (view::host_change_json).
struct HostChange {
  std::uint64_t since = 0;
  http::Part text;
};

/// A host with its entry as text. The text is made once, and the events about the host share it.
struct PostedHost {
  std::shared_ptr<const Host> host;
  http::Part entry;
  http::Frame event;   ///< of the stream /api/v1/hosts/events
  http::Frame change;  ///< of the stream /api/v1/hosts/changes
};
/// `number`: of the host's events, larger than any before.
PostedHost post(Host host, const http::Part& entry, std::uint64_t number,
                const std::optional<HostChange>& change = {});

/// /api/v1/hosts, its two streams, and /api/v1/match: the same on an agent, which is one host, and
/// on a hub. `head.number` is that of the event `summary`, which says which hosts are left; it is
/// larger than any host's number. Pure.
void publish_hosts(const std::vector<PostedHost>& posted, const view::HostsHead& head,
                   http::Published& published);

}  // namespace berth::agent
