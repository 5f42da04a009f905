#include "berth/source/nvml/topology_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace berth::nvml {
namespace {

/// More than any GPU has; a GPU's own end of the list is told by its answer.
constexpr unsigned kMostLinks = 64;

using Address = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

Address address_of(const Pci& pci) {
  return {pci.domain, pci.bus, pci.device};
}

/// Where the NVLinks of one GPU go.
struct Links {
  std::map<Address, unsigned> direct;
  unsigned to_switch = 0;
  bool known = true;
};

void add_link(Library& library, Handle device, unsigned link, Links& links) {
  unsigned type = kRemoteUnknown;
  if (library.call(library.nvlink_remote_type, device, link, &type) == kSuccess && type == kRemoteSwitch) {
    ++links.to_switch;
    return;
  }
  Pci remote{};
  if (library.call(library.nvlink_remote, device, link, &remote) == kSuccess)
    ++links.direct[address_of(remote)];
}

Links read_links(Library& library, Handle device) {
  Links links;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    const Return outcome = library.call(library.nvlink_state, device, link, &active);
    if (outcome == kSuccess) {
      if (active == 1) add_link(library, device, link, links);
    } else if (outcome == kNotSupported && link > 0) {
      continue;  // this link is not wired, a later one may be
    } else {
      links.known = outcome == kInvalidArgument || outcome == kNotSupported || outcome == kFunctionNotFound;
      break;
    }
  }
  return links;
}

struct Gpu {
  Handle handle;
  std::optional<Address> address;
  Links links;
};

Gpu read_gpu(Library& library, Handle handle) {
  Gpu gpu{.handle = handle, .address = std::nullopt, .links = read_links(library, handle)};
  Pci pci{};
  if (library.call(library.pci, handle, &pci) == kSuccess) gpu.address = address_of(pci);
  return gpu;
}

unsigned direct_links(const Gpu& from, const Gpu& to) {
  if (!to.address) return 0;
  const auto found = from.links.direct.find(*to.address);
  return found == from.links.direct.end() ? 0 : found->second;
}

/// Through NVSwitch every GPU reaches every other with all its links, so the switch, not the peer,
/// is what each link names.
unsigned switched_links(Library& library, const Gpu& a, const Gpu& b) {
  const unsigned links = std::min(a.links.to_switch, b.links.to_switch);
  if (links == 0) return 0;
  unsigned status = 0;
  const Return outcome = library.call(library.p2p_status, a.handle, b.handle, unsigned{kP2pNvlink}, &status);
  return outcome == kSuccess && status != 0 ? 0 : links;
}

Link read_pair(Library& library, const Gpu& a, const Gpu& b) {
  Link link;
  unsigned level = 0;
  if (library.call(library.common_ancestor, a.handle, b.handle, &level) == kSuccess) link.level = level;
  // A link works when both its ends do. An end that could not be read does not count against it.
  const unsigned forth = direct_links(a, b);
  const unsigned back = direct_links(b, a);
  if (a.links.known && b.links.known) {
    link.nvlinks = std::min(forth, back);
  } else {
    link.nvlinks = std::max(forth, back);
  }
  link.nvlinks += switched_links(library, a, b);
  return link;
}

}  // namespace

Topology read_topology(Library& library, const std::vector<TopologyMember>& members) {
  Topology topology;
  std::vector<Gpu> gpus;
  for (const TopologyMember& member : members) {
    topology.uuids.push_back(member.uuid);
    gpus.push_back(read_gpu(library, member.handle));
  }
  const std::size_t count = gpus.size();
  topology.links.resize(count * count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      const Link link = read_pair(library, gpus[a], gpus[b]);
      topology.links[a * count + b] = link;
      topology.links[b * count + a] = link;
    }
  }
  return topology;
}

}  // namespace berth::nvml
