#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/core/host.h"

namespace berth::render {

/// What a document about several hosts says of itself.
struct HostsHead {
  std::uint64_t number = 0;  ///< rises with each change
  std::int64_t time_s = 0;
  std::int64_t every_s = 0;  ///< how often each host is asked
  bool is_hub = false;
};

/// One host, on one line: an entry of `hosts` in docs/schema/hosts.json. `listing` and `queue` are the two
/// documents of its report, "" where there is none.
std::string host_json(const Host& host, std::string_view listing, std::string_view queue);
/// The same, with both documents made from the report.
std::string host_json(const Host& host);

/// How an entry became another: {"name": …, "patch": …}, a JSON Patch (RFC 6902), on one line. "" where that
/// says hardly less than the entry.
std::string host_change_json(std::string_view before, std::string_view after);

/// The whole document, of entries that were made before.
std::string hosts_json(const HostsHead& head, std::span<const std::string_view> entries,
                       const Totals& totals);

/// What stands before and after the entries in it, which have commas between them.
std::pair<std::string, std::string> around_hosts(const HostsHead& head, const Totals& totals);

/// The document without its entries, which are only named, on one line: the event `summary`.
std::string hosts_summary_json(const HostsHead& head, const Hosts& hosts, const Totals& totals);

/// Where a filter holds.
std::string match_json(const std::vector<PlacedDevice>& devices);

/// How a hub is: as /api/v1/health of an agent says it of its driver, it says it of its agents.
struct HubHealth {
  std::string_view version;
  std::string_view hostname;
  std::int64_t time_s = 0;
};
std::string hub_health_json(const HubHealth& health, const Hosts& hosts);

}  // namespace berth::render
