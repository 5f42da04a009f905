#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "berth/request/job_mask.h"
#include "berth/verdict/choice.h"
#include "berth/verdict/ledger.h"
#include "berth/view/compliance.h"
#include "berth/view/doctor.h"
#include "berth/view/refusal.h"

// What commands and the agent answer with --json, but for listings. A whole document each.
namespace berth::view {

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
