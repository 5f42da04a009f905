#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "berth/agent/answer.h"
#include "berth/core/host.h"
#include "berth/render/hosts_json.h"

namespace berth::serve {

/// A host with its entry as text, made once: the event that tells of it has it too.
struct PostedHost {
  std::shared_ptr<const Host> host;
  Part entry;
  Frame event;
};
/// `number`: of the event, larger than any before.
PostedHost post(Host host, Part entry, std::uint64_t number);

/// /api/v1/hosts, its events, and /api/v1/match: the same on an agent, which is one host, and on a hub.
/// `head.number` is that of the event `summary`, which tells who is left: larger than any host's. Pure.
void publish_hosts(const std::vector<PostedHost>& posted, const render::HostsHead& head,
                   Published& published);

}  // namespace berth::serve
