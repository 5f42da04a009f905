#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/machines/host.h"
#include "berth/request/job_mask.h"
#include "berth/request/request.h"
#include "berth/verdict/ledger.h"
#include "berth/verdict/select.h"
#include "berth/verdict/verdict.h"
#include "berth/view/compliance.h"
#include "berth/view/doctor.h"
#include "berth/view/explain.h"
#include "berth/view/listing.h"

namespace berth::view {

/// Every document is an object that begins with "kind" and "version"; docs/schema has a schema for
/// each kind. A key is never missing: an unknown value is null. Texts are as `printable_lines`
/// gives them.
enum class Layout {
  lines,  ///< indented, for files and people
  line,   ///< one line, for streams
};

std::string listing_json(const Listing& listing, Layout layout);

/// The waiting requests, each with its reason in words, and how many of each user are not among
/// them.
std::string queue_json(const std::vector<Standing>& waiters, const std::vector<Unlisted>& unlisted,
                       Layout layout);

/// The leases alone, each as in a listing. `booted_at_s`: as in Facts.
std::string leases_json(const Ledger& ledger, std::int64_t booted_at_s, Layout layout);

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
