#include "berth/net/client_group.h"

#include <sys/resource.h>

#include <algorithm>

namespace berth::net {
namespace {

constexpr std::size_t kMostConnections = 4000;
constexpr std::size_t kMostLocalConnections = 500;

/// As many descriptors as the system lets this process have. Returns how many that is.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostConnections;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * kMostConnections);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace

void allow_connections(http::Connections& network, http::Connections& local) {
  const std::size_t descriptors = raise_descriptor_limit();
  const std::size_t most = std::min(kMostConnections, descriptors / 8 * 5);
  network.allow(most, most / 2);
  const std::size_t most_local = std::min(kMostLocalConnections, descriptors / 8);
  local.allow(most_local, most_local);
}

}  // namespace berth::net
