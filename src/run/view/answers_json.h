#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/machines/host.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/verdict.h"
#include "berth/view/doctor.h"
#include "berth/view/listing.h"
#include "berth/view/refusal.h"
#include "berth/view/text.h"

namespace berth::view {

std::string listing_json(const Listing& listing, Layout layout);

/// The waiting requests, each with its reason in words, and how many of each user are not among
/// them.
std::string queue_json(const std::vector<Standing>& waiters, const std::vector<Unlisted>& unlisted,
                       Layout layout);

/// The leases alone, each as in a listing. `booted_at_s`: as in Facts.
std::string leases_json(const Ledger& ledger, std::int64_t booted_at_s, Layout layout);

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

// What commands and the agent answer with --json, but for listings. A whole document each.

/// What the agent answers if it has no answer: an error.
std::string error_json(const Error& error);
/// The message of such a document; "": the text is no such document.
std::string message_of_error(std::string_view document);

/// The state of the agent's history.
struct HistoryHealth {
  enum class Status { off, ok, failing };
  Status status = Status::off;
  std::string reason;      ///< why it fails, or what became of the file before; "": nothing to tell
  std::uint64_t lost = 0;  ///< samples that were lost because there was no room

  bool operator==(const HistoryHealth&) const = default;
};

/// The health of the agent.
struct AgentHealth {
  std::string_view version;
  std::string_view hostname;
  const Snapshot* snapshot = nullptr;  ///< null: the last look failed, and `error` says why
  const Error* error = nullptr;
  std::vector<std::string> warnings{};
  HistoryHealth history{};
};
std::string health_json(const AgentHealth& health);

/// What `claim` and `adopt` answer.
struct Claim {
  const Ticket& ticket;
  std::vector<const Device*> devices;
  const std::vector<std::pair<std::string, std::string>>& environment;
  std::int64_t until_s = 0;  ///< 0: it has no time limit
};
std::string claim_json(const Claim& claim);

std::string verify_json(const JobCompliance& job);

/// What `pick` answers.
struct Pick {
  const Choice& choice;
  const Snapshot& snapshot;
  const JobMask& mask;
  std::vector<std::string> notes;
  std::string_view lease;         ///< id of the lease that --hold took; "": nothing is held
  std::int64_t held_until_s = 0;  ///< 0: nothing is held
};
std::string pick_json(const Pick& pick);

std::string why_json(const Why& why);

std::string doctor_json(const std::vector<Finding>& findings);

std::string version_json(std::string_view version);

}  // namespace berth::view
