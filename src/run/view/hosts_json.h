#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/machines/host.h"
#include "berth/machines/lab_standing.h"

namespace berth::view {

/// The head of a document about several hosts.
struct HostsHead {
  std::uint64_t number = 0;  ///< increases with each change
  std::int64_t time_s = 0;
  std::int64_t every_s = 0;  ///< how often each host is asked
  bool is_hub = false;
  std::vector<LabStanding> queue{};  ///< the lab queue; empty: nobody stands there, or it is not known
  std::uint64_t queue_number = 0;    ///< when the line has changed last; 0: it is not known
};

/// One host, on one line: an entry of `hosts` in docs/schema/hosts.json. `listing` and `queue` are
/// the two documents of its report; "" if there is none.
std::string host_json(const Host& host, std::string_view listing, std::string_view queue);
/// The same, with both documents made from the report.
std::string host_json(const Host& host);

/// The change from one entry to another: {"name": …, "patch": …}, a JSON Patch (RFC 6902), on one
/// line. "" if that is hardly shorter than the entry.
std::string host_change_json(std::string_view before, std::string_view after);

/// The whole document, made of entries that exist already.
std::string hosts_json(const HostsHead& head, std::span<const std::string_view> entries,
                       const Totals& totals);

/// The text before and after the entries in the document; the entries are separated by commas.
std::pair<std::string, std::string> around_hosts(const HostsHead& head, const Totals& totals);

/// The document on one line with only the names of the entries: the event `summary`.
std::string hosts_summary_json(const HostsHead& head, const Hosts& hosts, const Totals& totals);

/// The devices on which a filter holds.
std::string match_json(const std::vector<HostDevice>& devices);

/// The lab queue on one line of text: the event `line`.
std::string lab_queue_json(std::span<const LabStanding> queue);

/// The health of a hub. It says of the hub's agents what /api/v1/health of an agent says of its
/// driver.
struct HubHealth {
  std::string_view version;
  std::string_view hostname;
  std::int64_t time_s = 0;
};
std::string hub_health_json(const HubHealth& health, const Hosts& hosts);

}  // namespace berth::view
