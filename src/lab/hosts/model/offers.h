#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "berth/hosts/model/host_ranking.h"
#include "berth/view/text.h"

namespace berth::view {

/// Every host with its reason, the best first. `lines`: in how many queues the request would wait
/// at once.
std::string why_of_hosts(const std::vector<RankedHost>& ranked, const std::vector<HostAnswer>& answers,
                         std::size_t lines, const Style& style);

/// The same, by docs/schema/why-hosts.json.
std::string why_of_hosts_json(const Request& request, const std::vector<RankedHost>& ranked,
                              const std::vector<HostAnswer>& answers, std::size_t lines);

}  // namespace berth::view
